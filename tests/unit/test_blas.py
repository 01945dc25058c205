"""While a solver runs BLAS has one thread, and afterwards as many as before."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
import threadpoolctl

import bmrm
from bmrm._blas import one_blas_thread


def threads() -> set[int]:
    """The numbers of threads; other packages (cvxpy) bring a BLAS that never has more than one."""
    return {lib["num_threads"] for lib in threadpoolctl.threadpool_info() if lib["filepath"] in with_threads()}


@cache
def with_threads() -> list[str]:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        libraries = threadpoolctl.threadpool_info()
    return [lib["filepath"] for lib in libraries if lib["user_api"] == "blas" and lib["num_threads"] == 2]


@pytest.fixture
def two_threads() -> Iterator[None]:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        if not with_threads():
            pytest.skip("numpy's BLAS has no threads here")
        yield


def test_one_thread_inside_and_as_many_as_before_afterwards(two_threads: None) -> None:
    with one_blas_thread(), one_blas_thread():
        assert threads() == {1}
    assert threads() == {2}


@pytest.mark.parametrize("fails", [False, True])
def test_solve_sets_it_back(two_threads: None, fails: bool) -> None:
    seen: set[int] = set()

    def monitor(record: object) -> None:
        seen.update(threads())
        if fails:
            raise RuntimeError("no more")

    rng = np.random.default_rng(0)
    problem = bmrm.Problem(bmrm.LinearRisk(rng.normal(size=(50, 3)), np.tile([1, -1], 25), "hinge"), "l2", lam=0.1)
    try:
        bmrm.solve(problem, monitor=monitor)
    except RuntimeError:
        assert fails
    assert seen == {1}
    assert threads() == {2}
