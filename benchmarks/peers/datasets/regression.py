"""Published regression sets, dense; targets have mean 0 and deviation 1, and so have the columns unless raw."""

import numpy as np

import bmrm
from benchmark_utils.files import folder, kept
from benchmark_utils.layout import BaseDataset

NAMES = "abalone ailerons bank32nh cadata cpusmall fried house8L housing kin8nm mv pol puma32H space_ga 2dplanes"
RAW = "cadata house8L cpusmall"


def standard(values):
    """Mean 0 and deviation 1 by columns; constant columns become 0."""
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def read(path):
    """Dense columns as they are, targets standardized."""
    data = bmrm.read(path)
    return np.asarray(data.X.todense()), standard(data.y)


def read_scaled(path):
    """Columns standardized too."""
    X, y = read(path)
    return standard(X), y


FILES = {name: (name, read_scaled) for name in NAMES.split()}
FILES |= {f"{name}_raw": (name, read) for name in RAW.split()}


class Dataset(BaseDataset):
    """Real targets."""

    name = "regression"
    parameters = {"which": list(FILES)}

    def get_data(self):
        """Matrix and targets."""
        name, parse = FILES[self.which]
        X, y = kept(f"regression_{self.which}", folder() / f"regression_{name}" / f"{name}.xz", parse)
        return {"X": X, "y": y, "task": "regression"}
