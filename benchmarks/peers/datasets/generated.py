"""Generated sets: there on every machine."""

import numpy as np
import scipy.sparse as sp

from benchmark_utils.layout import BaseDataset


def signs(scores):
    """Labels of scores."""
    return np.where(scores > 0.0, 1.0, -1.0)


def dense(rng, m=20000, d=50):
    """Two overlapping classes in correlated columns."""
    X = rng.normal(size=(m, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)) / np.sqrt(d))
    return X, signs(X @ rng.normal(size=d) + 4.0 * rng.normal(size=m)), "classification"


def raw(rng, m=20000, d=30):
    """A table as it is exported: positive columns in units from hundredths to thousands, none of them scaled."""
    X = rng.lognormal(sigma=0.5, size=(m, d)) * 10.0 ** rng.uniform(-2.0, 3.0, size=d)
    scores = ((X - X.mean(axis=0)) / X.std(axis=0)) @ rng.normal(size=d)
    return X, signs(scores + scores.std() * rng.normal(size=m)), "classification"


def small(rng):
    """As `dense`, for a first look."""
    return dense(rng, 600, 10)


def text(rng, m=10000, d=20000, words=60):
    """Rows of length 1 with word counts like those of text: frequency falls as 1 / rank."""
    share = 1.0 / np.arange(1, d + 1)
    columns = rng.choice(d, size=m * words, p=share / share.sum())
    X = sp.csr_matrix((np.ones(m * words), (np.repeat(np.arange(m), words), columns)), shape=(m, d))
    idf = np.log(m / np.maximum(1.0, X.getnnz(axis=0)))
    X = sp.csr_matrix(X @ sp.diags_array(idf))
    X = sp.csr_matrix(sp.diags_array(1.0 / np.maximum(np.sqrt(X.multiply(X).sum(axis=1)).A1, 1e-12)) @ X)
    scores = X @ rng.normal(size=d)
    return X, signs(scores + 0.3 * scores.std() * rng.normal(size=m)), "classification"


def heavy(rng, m=40000, d=30):
    """A linear model whose noise has heavy tails."""
    X = rng.normal(size=(m, d))
    y = X @ rng.normal(size=d) / np.sqrt(d) + 0.5 * rng.standard_t(2.5, size=m)
    return X, y / y.std(), "regression"


def small_heavy(rng):
    """As `heavy`, for a first look."""
    return heavy(rng, 600, 10)


def wide(rng, m=1000, d=10000):
    """Few rows, many columns, few of them of use."""
    X = rng.normal(size=(m, d))
    y = X[:, :50] @ rng.normal(size=50) + 2.0 * rng.normal(size=m)
    return X, y / y.std(), "regression"


def counts(rng, m=20000, d=30):
    """Counts whose rate is an exponential of a linear function."""
    X = rng.normal(size=(m, d)) / np.sqrt(d)
    return X, rng.poisson(np.exp(X @ rng.normal(size=d))).astype(float), "counts"


def small_counts(rng):
    """As `counts`, for a first look."""
    return counts(rng, 600, 10)


KINDS = {
    "gen_small": small,
    "gen_dense": dense,
    "gen_text": text,
    "gen_raw": raw,
    "gen_small_heavy": small_heavy,
    "gen_heavy": heavy,
    "gen_wide": wide,
    "gen_small_counts": small_counts,
    "gen_counts": counts,
}


class Dataset(BaseDataset):
    """Drawn with a fixed seed."""

    name = "generated"
    parameters = {"which": list(KINDS)}

    def get_data(self):
        """Matrix and targets."""
        X, y, task = KINDS[self.which](np.random.default_rng(7))
        return {"X": X, "y": y, "task": task}
