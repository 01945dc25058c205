"""Published sets with two classes, as CSR; labels are -1 and 1."""

import lzma

import numpy as np
import scipy.sparse as sp

import bmrm
from benchmark_utils.files import folder, kept
from benchmark_utils.layout import BaseDataset


def signs(positive):
    """Labels from a mask."""
    return np.where(positive, 1.0, -1.0)


def published(path):
    """Labels as in the file."""
    data = bmrm.read(path)
    return data.X, signs(data.y > 0)


def second_class(path):
    """Class 2 against the rest."""
    data = bmrm.read(path)
    return data.X, signs(data.y == 2)


def second_class_scaled(path):
    """Class 2 against the rest, every column divided by its largest value."""
    X, y = second_class(path)
    top = abs(X).max(axis=0).toarray().ravel()
    return X @ sp.diags_array(1.0 / np.maximum(top, 1e-300)), y


def odd_classes(path):
    """Odd classes against even ones."""
    data = bmrm.read(path)
    return data.X, signs(data.y % 2 == 1)


def even_digits(path):
    """Even against odd digits, pixels divided by 255."""
    pixels = read_idx(path, 16).reshape(-1, 784)
    label = read_idx(path.with_name("train-labels.idx1-ubyte.xz"), 8)
    return sp.csr_matrix(pixels / 255.0), signs(label % 2 == 0)


def read_idx(path, header):
    """The bytes of an idx file."""
    with lzma.open(path) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)


FILES = {
    "a9a": ("a9a/a9a.xz", published),
    "ijcnn1": ("ijcnn1/ijcnn1.xz", published),
    "reuters": ("reuters_lasvm/reuters.xz", published),
    "farm_ads": ("farm_ads/farm_ads.xz", published),
    "news20": ("news20/news20.xz", odd_classes),
    "20news_bigram": ("20news_bigram_binary/20news_1-2gram.binary.xz", published),
    "mnist": ("mnist/train-images.idx3-ubyte.xz", even_digits),
    "covtype_scaled": ("covtype/covtype.xz", second_class_scaled),
    "covtype": ("covtype/covtype.xz", second_class),
}


class Dataset(BaseDataset):
    """Two classes."""

    name = "binary"
    parameters = {"which": list(FILES)}

    def get_data(self):
        """Matrix and labels."""
        file, parse = FILES[self.which]
        X, y = kept(self.which, folder() / file, parse)
        return {"X": X, "y": y, "task": "classification"}
