"""Seeds, hypothesis settings, and the marker `slow`: such tests run only if a -m expression asks for them."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from hypothesis import settings

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn's array API checks ask for it before scipy is loaded

# A shell starts background jobs with Ctrl-C ignored, which tests of Ctrl-C and their processes would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    if not config.option.markexpr:
        config.option.markexpr = "not slow"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)
