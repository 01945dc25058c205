"""Texts in svmlight format, and the bits of arrays, for the tests."""

from __future__ import annotations

import numpy as np


def bits(array):
    return np.ascontiguousarray(array).tobytes()


def random_text(seed, n_rows=300, first=1, qid=False):
    rng = np.random.default_rng(seed)
    lines = []
    for row in range(n_rows):
        indices = np.flatnonzero(rng.random(40) < 0.2) + first
        values = rng.standard_normal(len(indices)) * 10.0 ** rng.integers(-30, 30, len(indices))
        group = f" qid:{row // 7}" if qid else ""
        entries = "".join(f" {i}:{v!r}" for i, v in zip(indices.tolist(), values.tolist()))
        lines.append(f"{rng.integers(-3, 4)}{group}{entries}\n")
    return "".join(lines)
