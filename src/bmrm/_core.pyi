"""
Compiled kernels of bmrm: products, losses, lines, the master's quadratic program, text parsing.
"""

from collections.abc import Sequence
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


def parse_svmlight(text: numpy.typing.NDArray[numpy.uint8], zero_based: bool | None, multilabel: bool | None, n_features: int | None, single: bool, n_threads: int, block_bytes: int = 1048576) -> tuple[Any, ...]:
    """
    Values, indices, indptr, n_features, labels, the ends of each row's labels (or None), groups (or None), and whether indices count from 0.
    """

class ActiveSetQp:
    """
    Minimizes 1/2 x'H x - b'x subject to x >= 0 and C x = c, for a positive semidefinite H.

    A primal active-set method that keeps its point, its support and the factor on it
    between solves. c: right-hand side of the equality rows. Not for use by two threads
    at a time.
    """

    def __init__(self, c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def add(self, h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Append a variable at zero.

        h: its entries of H with the variables there are, then with itself.
        column: its coefficients in the rows of C.
        """

    def remove(self, indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Remove variables, given in ascending order; ValueError unless each of them is zero.

        The others keep their order and values.
        """

    def set_start(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Start the next solve from a feasible point; ValueError if it is not feasible.
        """

    def solve(self, b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tol: float = 1e-14, max_steps: int | None = None) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Solve for the linear term b from the current point and return the minimizer.

        tol: reduced costs above -tol, relative to the terms they are made of, count as nonnegative.
        max_steps: the current point, feasible too, is returned after this many (default 20 n + 200).
        RuntimeError if the problem is unbounded.
        """

    def multipliers(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Multipliers nu of the rows: H x - b - C'nu is nonnegative, and zero where x is positive.
        """

    @property
    def size(self) -> int:
        """Number of variables."""

    @property
    def x(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """The current point (a copy)."""

    @property
    def steps(self) -> int:
        """Active-set steps of the last solve."""

    @property
    def optimal(self) -> bool:
        """
        Whether the last solve ended with an optimal point, and not at the limit of steps.
        """

    @property
    def violation(self) -> float:
        """
        Most negative reduced cost after the last solve, relative to the terms it is made of.
        """

class Matrix:
    """A data matrix, dense or of compressed rows, float32 or float64."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_cols(self) -> int: ...

    @property
    def n_entries(self) -> int: ...

    @property
    def fuses(self) -> bool:
        """Whether evaluate reads the data once instead of twice."""

    def dot(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out = X w"""

    def tdot(self, g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out = X' g"""

    def dot_rows(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """out[k] = <x_rows[k], w>"""

    def row_norms(self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out[i] = |x_i|^2"""

    def evaluate(self, loss: ScalarLoss, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], constant: float, offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> tuple[float, float]:
        """
        scores = X w + constant + offset, weighted slopes of the loss, gradient = X' slopes.

        Returns the weighted value and the sum of the slopes.
        """

    def first_nonfinite(self, n_threads: int = 1) -> tuple[int, int] | None:
        """(row, column) of the first NaN or infinity."""

@overload
def csr(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int) -> Matrix: ...

@overload
def csr(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int) -> Matrix: ...

@overload
def csr(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int) -> Matrix: ...

@overload
def csr(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int) -> Matrix:
    """A matrix of compressed rows over the arrays given; nothing is copied."""

@overload
def dense(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Matrix: ...

@overload
def dense(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Matrix:
    """A dense matrix over a C-ordered array; nothing is copied."""

@overload
def check_indices(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, n_threads: int = 1) -> tuple[bool, int, int]: ...

@overload
def check_indices(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, n_threads: int = 1) -> tuple[bool, int, int]:
    """
    Whether rows increase strictly, and the first row (or -1) with an index outside [0, n_cols), and that index.
    """

class ScalarLoss:
    """A compiled scalar loss."""

    def evaluate(self, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> tuple[float, float]:
        """
        Weighted value and the sum of the slopes; slopes[i] = weight[i] * dl/df.
        """

    def extreme(self, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        slopes[i] = weight[i] * the subgradient that is largest in direction g[i].
        """

    def curvature(self, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """out[i] = weight[i] * second derivative."""

def loss_names() -> list[str]: ...

def scalar_loss(name: str, parameters: Sequence[float] = []) -> ScalarLoss:
    """The compiled loss of that name."""

def piecewise_quadratic(knots: Sequence[float], coefficients: Sequence[float], of: str) -> ScalarLoss:
    """a z^2 + b z + c between increasing knots."""

class Line:
    """t -> sum_i weight_i l(f_i + t g_i, y_i)."""

    def evaluate(self, t: float, n_threads: int = 1) -> tuple[float, float, float]:
        """Value, left slope, right slope."""

def line(loss: ScalarLoss, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float) -> Line:
    """The loss on a line through scores f in direction g."""

def minimize_on_line(lines: Sequence[Line], p: float, q: float, guess: float = 1.0, n_threads: int = 1) -> tuple[float, float, int, bool]:
    """
    Exact minimum over t >= 0 of p t + q t^2/2 + the lines: (t, right slope, trials, bounded).
    """

def descent_epoch(X: Matrix, loss: ScalarLoss, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], offsets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, share: float, metric: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shrinks: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], plain: bool, lam: float, rule: str, t0: float, radius: float, batch: int, every: float, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], average: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Visit the rows in order with one of the rules sgd, folos, pegasos, adaptive, proximal; w, average and clock go on.

    slopes and offsets hold a tangent of each row's loss, which the one met now replaces or, given u, improves.
    """

def shrinkage_epoch(X: Matrix, loss: ScalarLoss, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], offsets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, share: float, metric: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shrinks: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], plain: bool, lam: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], eta0: float, t0: float, power: float, every: float, learns: bool, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], average: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Visit the rows in order by forward-backward splitting with l1 or, given a curvature, by the diagonal quasi-Newton method with l2.
    """
