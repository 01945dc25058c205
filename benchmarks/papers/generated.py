"""Stand-ins of the same kind where the files are not present: the same shape, sparsity and difficulty, roughly."""

import numpy as np
import scipy.sparse as sp


def _text(m, d, k, noise):
    """Bags of words: few of many columns, the first ones far more often than the last, rows of length 1."""

    def draw(rng, rows):
        n, words = (m, d) if rows is None else (rows, d // 20)
        columns = np.minimum((words * rng.random(n * k) ** 3).astype(np.int32), words - 1)
        X = sp.csr_array((rng.lognormal(size=n * k), columns, np.arange(0, n * k + 1, k)), shape=(n, words))
        X.sum_duplicates()
        X = sp.csr_array(sp.diags_array(1.0 / np.sqrt(X.multiply(X).sum(axis=1))) @ X)
        score = X @ rng.normal(size=words)
        return X, np.where(score + noise * score.std() * rng.normal(size=n) > 0.0, 1.0, -1.0)

    return draw


def _table(m, choices, numbers, noise):
    """Columns with numbers in [0, 1], and answers to questions with so many choices each as zeros and ones."""

    def draw(rng, rows):
        n = rows or m
        parts = [sp.csr_array(rng.random((n, numbers)))] if numbers else []
        for count in choices:
            answer = np.minimum(rng.geometric(2.0 / (count + 2), size=n) - 1, count - 1)
            parts.append(sp.csr_array((np.ones(n), answer, np.arange(n + 1)), shape=(n, count)))
        X = sp.csr_array(sp.hstack(parts))
        score = X @ rng.normal(size=X.shape[1])
        score = score - score.mean() + noise * score.std() * rng.normal(size=n)
        return X, np.where(score > 0.0, 1.0, -1.0)

    return draw


def _images(rng, rows):
    """Smooth blobs of ink on 28 x 28 pixels; four fifths of the pixels are white."""
    n = rows or 20000
    grid = np.arange(28.0)
    ink = np.zeros((n, 28, 28))
    for _ in range(3):
        x, y = rng.uniform(6.0, 22.0, size=(2, n, 1))
        ink += (
            np.exp(-((grid - x) ** 2) / 8.0)[:, :, None] * np.exp(-((grid - y) ** 2) / rng.uniform(2.0, 30.0))[:, None]
        )
    X = np.where(ink > 0.2, np.minimum(ink, 1.0), 0.0).reshape(n, 784)
    score = X @ rng.normal(size=784)
    return sp.csr_array(X), np.where(score - np.median(score) + score.std() * rng.normal(size=n) > 0.0, 1.0, -1.0)


def _classes(kind, k, sets=False):
    """The rows of another kind with the best of k noisy linear rules as class, or the best two as labels."""

    def draw(rng, rows):
        X, _ = kind(rng, rows or 4000)
        scores = X @ rng.normal(size=(X.shape[1], k))
        order = np.argsort(scores + 0.5 * scores.std() * rng.normal(size=scores.shape), axis=1)
        return X, [tuple(sorted(row)) for row in order[:, -2:].tolist()] if sets else order[:, -1]

    return draw


def _friedman(rng, rows):
    """Friedman's function of five of ten numbers: the formula by which the original was made."""
    X = rng.random((rows or 40000, 10))
    y = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    return X, y + rng.normal(size=len(y))


def _planes(rng, rows):
    """Two planes, chosen by the first of ten coordinates: the formula by which the original was made."""
    n = rows or 40000
    X = rng.integers(-1, 2, size=(n, 10)).astype(np.float64)
    X[:, 0] = rng.choice((-1.0, 1.0), size=n)
    upper = 3.0 + 3.0 * X[:, 1] + 2.0 * X[:, 2] + X[:, 3]
    lower = -3.0 + 3.0 * X[:, 4] + 2.0 * X[:, 5] + X[:, 6]
    return X, np.where(X[:, 0] > 0.0, upper, lower) + rng.normal(size=n)


TEXT = "sparse bags of words with labels from a noisy linear rule"
RULES = ", the best of several noisy linear rules as class"
TABLE = "numbers and one-of-many answers with labels from a noisy linear rule"
KINDS = {
    "adult": (_table(40000, (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41), 0, 1.0), TABLE),
    "covertype": (_table(200000, (4, 40), 10, 1.0), TABLE),
    "ijcnn1": (_table(44000, (10,), 12, 0.7), TABLE),
    "digits": (_images, "blobs of ink with labels from a noisy linear rule"),
    "news": (_text(20000, 62000, 80, 0.3), TEXT),
    "reuters": (_text(10000, 8300, 44, 0.5), TEXT),
    "letter": (_classes(_table(4000, (), 16, 1.0), 26), "16 numbers" + RULES),
    "usps": (_classes(_images, 10), "blobs of ink" + RULES),
    "dna": (_classes(_table(4000, (4,) * 45, 0, 1.0), 3), "one-of-many answers" + RULES),
    "ten digits": (_classes(_images, 10), "blobs of ink" + RULES),
    "newsgroups": (_classes(_text(4000, 62000, 80, 0.3), 20), "sparse bags of words" + RULES),
    "scene": (_classes(_table(4000, (), 294, 1.0), 6, sets=True), "294 numbers" + RULES),
    "reports": (_classes(_table(4000, (2,) * 250, 0, 1.0), 22, sets=True), "one-of-many answers" + RULES),
    "mails": (_classes(_text(4000, 1000, 84, 0.3), 53, sets=True), "sparse bags of words" + RULES),
    "friedman": (_friedman, "Friedman's formula"),
    "planes": (_planes, "the formula of two planes"),
    "mv": (_friedman, "Friedman's formula"),
    "pole": (_planes, "the formula of two planes"),
}
