"""Objects of the compiled core to call with, and what is done with those that a call returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmrm import _core

_DENSE = np.array([[2.0, 1.0, 0.0], [-1.0, -2.0, 1.0], [1.5, -0.5, 0.0], [0.0, 1.0, 3.0]])


def _csr(value: str = "f8", index: str = "i4") -> Any:
    indptr = np.array([0, 2, 5, 7, 9])
    indices = np.array([0, 1, 0, 1, 2, 0, 1, 1, 2], index)
    return _core.csr(np.arange(9.0).astype(value), indices, indptr, 3)


def _line(name: str = "hinge") -> Any:
    f = np.array([0.5, -1.0, 2.0])
    return _core.line(_core.scalar_loss(name), f, f[::-1].copy(), np.array([1.0, -1.0, 1.0]), None, 0.5)


def _qp(n: int) -> Any:
    qp = _core.ActiveSetQp(np.array([1.0]))
    for k in range(n):
        qp.add(np.array([0.5] * k + [1.0 + k]), np.array([1.0]))
    if n:
        qp.set_start(np.eye(n)[0])
    return qp


def _losses() -> list[Callable[[], Any]]:
    made: list[Callable[[], Any]] = []
    for name in _core.loss_names():
        for parameters in ((), (0.5,), (0.5, 0.5)):
            try:
                _core.scalar_loss(name, parameters)
            except (ValueError, RuntimeError):
                continue
            made.append(lambda name=name, parameters=parameters: _core.scalar_loss(name, parameters))
            break
    return [*made, lambda: _core.piecewise_quadratic([0.0], [0.5, 0.0, 0.0, 0.0, 0.0, 0.0], "margin")]


_ENDS = np.array([0, 2, 4])
OBJECTS: dict[str, list[Callable[[], Any]]] = {
    "Matrix": [
        lambda: _core.dense(_DENSE),
        _csr,
        lambda: _core.dense(_DENSE.astype("f4")),
        lambda: _csr("f4", "i8"),
        lambda: _core.dense(np.empty((0, 3))),
        lambda: _core.dense(np.empty((3, 0))),
        lambda: _core.csr(np.empty(0), np.empty(0, "i4"), np.zeros(4, "i8"), 2**17),
        lambda: _core.csr(np.empty(0), np.empty(0, "i4"), np.zeros(1, "i8"), 3),
    ],
    "Columns": [lambda: _core.columns(_csr()), lambda: _core.columns(_core.dense(_DENSE))],
    "ScalarLoss": _losses(),
    "Line": [_line, lambda: _line("logistic"), lambda: _line("square")],
    "VectorRows": [
        lambda: _core.softmax(np.array([0, 2, 1, 0], "i4"), 3),
        lambda: _core.max_margin(np.array([0, 2, 1, 0], "i4"), 3, None, None),
        lambda: _core.multilabel(_ENDS, np.array([0, 2, 1, 0], "i4"), 3, 1.0, None),
    ],
    "JointRows": [
        lambda: _core.JointRows.of_labels(np.array([0, 1, 2, 2, 4]), np.array([0, 2, 1, 2], "i4"), 3, 1.0),
        lambda: _core.JointRows.of_tree(
            np.array([-1, 0, 0]), np.array([1, 2]), np.array([0, 1, 1, 0], "i4"), 1.0 - np.eye(2)
        ),
    ],
    "ActiveSetQp": [lambda: _qp(0), lambda: _qp(1), lambda: _qp(3)],
    "BlockFactors": [lambda: _core.block_factors(np.stack([np.eye(3)] * 2), 0.0)],
    "Buffers": [lambda: _core.Buffers(3), lambda: _core.Buffers(0)],
    "ChainEmissions": [
        lambda: _core.chain_emissions(
            np.array([0, 2, 3]), np.array([0, 1, 1], "i4"), None, np.array([0, 3, 6]), None, 3
        )
    ],
    "ChainEdges": [lambda: _core.chain_edges(np.array([0, 2, 3]), np.array([0, 1, 1], "i4"), None, 2, 3)],
}


def use(found: Any) -> None:
    """Let an object that a call has returned work once."""
    if isinstance(found, _core.Matrix) and found.n_cols < 1 << 16:
        _use_matrix(found)
    elif isinstance(found, _core.Line):
        found.evaluate(0.5)
        _core.minimize_on_line([found], 0.0, 1.0)
    elif isinstance(found, _core.Columns):
        _use_columns(found)
    elif isinstance(found, np.ndarray) and found.size:
        found.copy()


def _use_matrix(X: Any) -> None:
    m, d = X.n_rows, X.n_cols
    f, g, wide = np.empty(m), np.empty(d), np.empty((m, 3))
    X.dot(np.ones(d), f)
    X.tdot(np.ones(m), g)
    X.dot_wide(np.ones((d, 3)), wide)
    X.tdot_wide(wide, np.empty((d, 3)))
    X.squares(np.ones(m), g)
    X.dot_rows(np.arange(m)[::-1].copy(), np.ones(d), f)
    X.first_nonfinite()
    if d < 100:
        X.gram(np.arange(m), np.ones(m), np.zeros((d, d)))
        use(_core.columns(X))


def _use_columns(X: Any) -> None:
    n, m = X.n_cols, X.n_rows
    one, most = np.ones(n), np.full(n, 10.0)
    X.descend(np.arange(n), np.ones(m), one.copy(), one, one, -most, most, np.zeros(n), np.zeros(m), 1e-3, 3)
