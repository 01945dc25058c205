"""What the tests of engines share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def binary(rng):
    """Rows of two classes that overlap."""
    X = rng.normal(size=(90, 4))
    return X, np.where(X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.normal(size=90) > 0.0, 1.0, -1.0)
