"""
Compiled kernels of bmrm: products, losses, lines, the master's quadratic program, text parsing.
"""

from collections.abc import Sequence
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


class Overdue(BaseException):
    """The deadline has passed."""

def clock() -> float:
    """Return the time in seconds that deadlines are given in."""

def deadline() -> float:
    """Return this thread's deadline, inf if it has none."""

def set_deadline(at: float) -> None:
    """
    Make this thread's computations raise Overdue from that time on; inf: never.
    """

def look() -> None:
    """Raise Overdue if this thread's deadline has passed."""

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

    def __deepcopy__(self, memo: object) -> ActiveSetQp:
        """
        A copy with the same point, support and factor: it goes on as this one does, to the last digit.
        """

    def __getstate__(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """All of it as one array of numbers."""

    def __setstate__(self, state: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Become what `__getstate__` was asked of; ValueError for an array of anything else.
        """

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

def elastic_dual(c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lam: float, u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], box: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """
    min over w of sum_j lam (u_j |w_j| + v_j w_j^2 / 2) + c_j w_j, and where it is.

    w_j lies between lower_j and upper_j and within box_j of 0. One number stands for all coordinates.
    """

def inner(a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
    """The inner product of two vectors, on the calling thread."""

def inner_of_sizes(a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
    """sum_j |a_j| |b_j|, on the calling thread."""

def widest(slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], reach: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: float) -> float:
    """
    The largest |v| with slopes_i v <= upper - offsets_i + reach_i for all i; inf if a side is open.
    """

def all_signs(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bool:
    """Whether all numbers are -1 or 1."""

def all_finite(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bool:
    """Whether all numbers are finite."""

def within(a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: float) -> bool:
    """Whether |a_j| <= limit for all j; never with a NaN."""

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

    def sum_depth(self, k: int = 1) -> int:
        """
        The most additions on the way of one row's term into an entry of X' g, or of X' G for k slopes of each row.
        """

    def dot(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out = X w"""

    def tdot(self, g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out = X' g"""

    def dot_wide(self, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out = X W, for k scores of each row"""

    def tdot_wide(self, L: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out = X' L, for k slopes of each row"""

    def dot_rows(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out[k] = <x_rows[k], w>"""

    def gram(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None:
        """
        The lower triangle of out = sum over k of c[k] x x', x the row rows[k].
        """

    def row_system(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], inverse: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, constant: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """
        The lower triangle of I + diag(sqrt(c)) X D X' diag(sqrt(c)) for some rows, scaled to a diagonal of ones.

        D is the diagonal given or the identity, constant that of a column of ones; weights are sqrt(c), scaled.
        """

    def squares(self, c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out[j] = sum over i of c[i] X[i, j]^2"""

    def row_norms(self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out[i] = |x_i|^2"""

    def square_sum(self, n_threads: int = 1) -> float:
        """The sum of the squares of all entries."""

    def evaluate(self, loss: ScalarLoss, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], constant: float, offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> tuple[float, float]:
        """
        scores = X w + constant + offset, weighted slopes of the loss, gradient = X' slopes.

        Returns the weighted value and the sum of the slopes.
        """

    def first_nonfinite(self, n_threads: int = 1) -> tuple[int, int] | None:
        """(row, column) of the first NaN or infinity."""

@overload
def csr(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, checked: bool = False) -> Matrix: ...

@overload
def csr(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, checked: bool = False) -> Matrix: ...

@overload
def csr(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, checked: bool = False) -> Matrix: ...

@overload
def csr(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, checked: bool = False) -> Matrix:
    """
    A matrix of compressed rows over the arrays given; nothing is copied.

    checked: whether check_indices has found all indices within n_cols.
    """

@overload
def order_rows(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], to_indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], to_values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> bool: ...

@overload
def order_rows(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], to_indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], to_values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> bool: ...

@overload
def order_rows(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], to_indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], to_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> bool: ...

@overload
def order_rows(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], to_indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], to_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> bool:
    """
    Copy rows with their indices increasing; False if an index occurs twice in a row.
    """

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

    def steepest(self, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, e: float) -> float:
        """
        The norm of the weighted slopes, each the steeper one of those at f[i] - e and f[i] + e.
        """

    def extreme(self, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        slopes[i] = weight[i] * the subgradient that is largest in direction g[i].
        """

    def curvature(self, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """out[i] = weight[i] * second derivative."""

    @overload
    def prox(self, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: float, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], dslopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None:
        """
        z[i] = argmin of q l(z) + (z - v[i])^2 / 2, slopes[i] = (v[i] - z[i]) / q, a slope of l at z[i],
        and dslopes[i] = d slopes[i] / d v[i], which is 1 / q on a kink. No weights.
        """

    @overload
    def prox(self, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], dslopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None:
        """The same with a q for each row."""

    def knots(self) -> tuple[str, list[float]] | None:
        """
        ('margin' | 'residual' | 'score', knots): of what the loss is piecewise quadratic, and where its pieces end.

        None if it is not.
        """

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

def minimize_on_line(lines: Sequence[Line], p: float, q: float, guess: float = 1.0, n_threads: int = 1, accuracy: float = 1e-09) -> tuple[float, float, int, bool]:
    """
    Minimum over t >= 0 of p t + q t^2/2 + the lines: (t, right slope, trials, bounded).

    The slope there is no more than accuracy times that at 0.
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

def dual_steps(X: Matrix, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, inverse: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, lam: float, intercept: bool, q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None:
    """q[i] = weight[i] <x_i, inverse x_i> / lam, the constant included."""

def dual_start(loss: ScalarLoss, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: float, s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None:
    """
    s[i] and b[i] of the plane that touches l at the proximal point of v[i].
    """

def dual_epoch(X: Matrix, loss: ScalarLoss, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], inverse: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, lam: float, intercept: bool, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], active: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], key: int, reach: float, pace: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scratch: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> tuple[float, float, float, int, int, int, int]:
    """
    One visit to each active row in random order; changes w, s, b, pace and the order of active.

    Returns the estimated gap, the largest change of a score by its own row, the length of the way of w, the
    numbers of changed rows, of rows still active (they come first), of entries visited, and of merges of two
    blocks of rows.
    """

def dual_check(loss: ScalarLoss, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], reach: float, active: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> tuple[float, float, float, float, int]:
    """
    Sums over all rows with true scores f; fills active with all rows, settled ones last.

    Returns the weighted sums of l(f), of l(f) - s f - b, of b + s offset, of the sizes of those terms, and the
    number of active rows.
    """

def envelope_along(loss: ScalarLoss, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, t: float, center: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: float, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], bends: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> tuple[float, float]:
    """
    The rows of the envelope of width q around the slopes `center`, at the scores f + t u.

    Returns the weighted first and second derivative in t, 0 without u.
    """

def envelope_plane(loss: ScalarLoss, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, weighted: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> tuple[float, float, float, float, float]:
    """
    The slopes times the weights, and weighted sums over the rows: of l(z), of slope (z - offset) and its size, of
    the slopes, and of slope (f - z).
    """

def nonzero(c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """The places of the numbers that are not 0."""

def changes(c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], same: float) -> tuple[float, Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    A factor by which c has changed somewhere, and the places where |c - factor before| > same c.

    The factor is 0 where c and before are nowhere both above 0.
    """

def selected_gram(X: Matrix, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], D: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], H: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
    """
    H = X_W' D X_W, row after row, for increasing columns W; column n_cols is the constant one.
    """

def selected_size(X: Matrix, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, float]:
    """
    Entries of the columns, and pairs of entries of the same row: about what an epoch and X'DX cost.
    """

def column_sizes(X: Matrix, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
    """
    Adds sum_i weight_i x_ij^2, and writes the number of entries of each column.
    """

def descend_with_matrix(H: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], tol: float, max_epochs: int) -> tuple[int, float]:
    """
    Coordinate descent on <slope, z> + z'Hz/2 + u|z| + v z^2/2 around the given z: (epochs, violation).
    """

class Columns:
    """A copy of the data by columns."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_cols(self) -> int: ...

    def descend(self, working: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], D: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], tol: float, max_epochs: int, n_threads: int = 1) -> tuple[int, float]:
        """
        As descend_with_matrix for H = X'DX, which is not formed; g belongs to w, and q holds D X (z - w).
        """

def columns(X: Matrix) -> Columns:
    """Copies a matrix by columns."""

def conjugate(loss: ScalarLoss, s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: float, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float) -> tuple[float, float]:
    """sum_i weight_i l*(theta s_i, y_i), and the sum of the absolute values."""

def clip_slopes(loss: ScalarLoss, s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
    """Moves each s_i into the range of the loss's slopes."""

def largest_curvature(loss: ScalarLoss) -> float:
    """A bound of the second derivative; inf if none."""

class VectorRows:
    """A sum of losses with k scores for each row."""

    def evaluate(self, scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> float:
        """The weighted sum; its slopes are written."""

    def extreme(self, scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], along: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Write the slopes that are steepest in the direction `along`."""

    def line(self, f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float) -> Line:
        """The sum on a line through f in direction g."""

def max_margin(y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, delta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, factor: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None) -> VectorRows:
    """max over c of factor(y, c) (f_c - f_y) + delta(y, c)."""

def multilabel(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, margin: float, delta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None) -> VectorRows:
    """
    max over true z and others z' of delta(z, z') + f_z' - f_z, at least 0.
    """

def softmax(y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int) -> VectorRows:
    """log sum exp f_c - f_y."""

def path_sums(parent: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Add to each node's score those above it, in place."""

def path_slopes(parent: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Add to each node's slope those below it, in place."""

def pair_hinge(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], turns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], queries: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], share: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> float:
    """
    sum_q share_q times the mean of p_i p_j max(0, 1 - (f_i - f_j)) over pairs of a higher and a lower grade.
    """

def gain_pairs(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], turns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], queries: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], gain: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], discount: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], share: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> float:
    """
    sum_q share_q times the sum of (g_i - g_j) (d_i - d_j) max(0, 1 - (f_i - f_j)); g and d are given by block.
    """

def fbeta(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], positives: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], negatives: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: float, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    max over labelings of 1 - F_beta + 1/m times the difference of the scores.
    """

def at_k(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], positives: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], negatives: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, per: float, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    The same for labelings with k positives and 1 - (true positives) / per.
    """

def gain_loss(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], turns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], margin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], share: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gain: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], discount: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> float:
    """
    sum_q share_q max over permutations of sum_i c_i (f_pi(i) - f_i) + (d_i - d_pi(i)) g_i.
    """

def reciprocal_rank_loss(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], turns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], margin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], share: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_relevant: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> float:
    """
    sum_q share_q max over permutations of sum_i c_i (f_pi(i) - f_i) + 1 - 1 / rank of the first relevant one.
    """

class BlockFactors:
    """Cholesky factors of k matrices of one size."""

    def solve(self, V: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None:
        """Column c of out solves block c for column c of V."""

def block_factors(H: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], ridge: float, n_threads: int = 1) -> BlockFactors:
    """
    Factors of k matrices, whose lower triangles are read; pivots are at least `ridge` times the diagonal.
    """

def softmax_shares(F: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None:
    """out = exp(F) / sum exp(F), row by row."""

def softmax_bend(shares: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], G: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None:
    """G = weight shares (G - <shares, G>), row by row, in place."""

def level_classes(theta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float) -> None:
    """
    Change theta so that each class has its own share of the rows, sum_i p_i theta_i = sum_i p_i e_y.
    """

def wide_dual_epoch(X: Matrix, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], inverse: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, constant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, lam: float, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], theta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], active: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], key: int, reach: float) -> tuple[float, float, float, int, int, int]:
    """
    One visit to each active row in random order; changes W, theta and the order of active.

    Returns what `dual_epoch` does.
    """

def wide_dual_check(F: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, theta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], reach: float, active: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[float, float, float, float, int]:
    """
    Sums over all rows with true scores F; fills active with all rows, settled ones last.
    """

def simplex_step(g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    out = argmax over t on the simplex of <g, t> - 1/2 sum_c q_c (t_c - theta_c)^2.
    """

class JointRows:
    """Rows whose losses are the largest of few-entry linear functions."""

    @staticmethod
    def of_labels(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, margin: float) -> JointRows: ...

    @staticmethod
    def of_tree(parents: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> JointRows: ...

    def epoch(self, X: Matrix, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], inverse: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, constant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, lam: float, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], theta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], active: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], key: int, reach: float) -> tuple[float, float, float, int, int, int]:
        """
        One visit to each active row in random order; changes W, theta and the order of active.

        Returns what `dual_epoch` does.
        """

    def check(self, F: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, theta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], reach: float, active: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[float, float, float, float, int]:
        """
        Sums over all rows with true scores F; fills active with all rows, settled ones last.
        """

    def best(self, F: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Write the vertices that are the loss at the scores F."""

    def level(self, theta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float) -> None:
        """
        Change theta so that the weighted slopes of each score add up to 0, to less where labels are rare.
        """

    def offsets(self, theta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """Write what the rows' planes are at scores of 0."""

    def slopes(self, theta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scale: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Write the weighted slopes of theta."""

class ChainEmissions:
    """Scores of tokens, tokens x padded labels, from their attributes."""

    def scores(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out[t, c] = sum_a x[t, a] w[a, c]."""

    def gradient(self, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out[a, c] = sum_t x[t, a] slopes[t, c]."""

def chain_emissions(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], attributes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, k: int) -> ChainEmissions:
    """
    Attribute a has the weights starts[a] to starts[a + 1], for the labels given there, or for all k.
    """

class ChainEdges:
    """Scores of edges, edges x k x padded labels, from their attributes."""

    def scores(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out[e, i, j] = sum_a x[e, a] w[a, i, j]."""

    def gradient(self, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
        """out[a, i, j] = sum_e x[e, a] slopes[e, i, j]."""

def chain_edges(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], attributes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_attributes: int, k: int) -> ChainEdges:
    """
    Edges lead from each token to the next of its sequence; all have weights for k x k labels.
    """

def chain_log(starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, pairs: bool, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, t: float, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> tuple[float, float]:
    """
    sum_i p_i (log Z - score of y) at scores f + t d, and the slope along d.
    """

def chain_hinge(starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, pairs: bool, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], each: float, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, t: float, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> tuple[float, float]:
    """
    sum_i p_i max over labels of costs + score - score of y, or, where each > 0, of their product plus costs.
    """

def chain_best(starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, pairs: bool, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
    """The labels with the largest score."""

def chain_worst(starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, pairs: bool, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], each: float, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
    """The labels with the largest hinge loss."""

def chain_marginals(starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, pairs: bool, f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], log_z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
    """The marginals of tokens, padded, and log Z of each sequence."""

class Buffers:
    """Arrays of n numbers, uninitialized, whose memory is used again."""

    def __init__(self, n: int) -> None: ...

    def take(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return an array."""

def combined(f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], t: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
    """out = f + t d, by several threads."""

def inner_and_size(a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> tuple[float, float]:
    """sum_i a_i b_i and sum_i |a_i b_i|, likewise."""

def fold_parts(max_loop: int, max_hairpin: int) -> list[tuple[str, int]]:
    """
    The kinds of weights of a folding, in their order, and how many there are of each.
    """

def fold_feature(bases: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], partner: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], max_loop: int, max_hairpin: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    How often a structure has each weight; ValueError if the partners are no structure of these bases.
    """

def fold_best(bases: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], truth: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], max_loop: int, max_hairpin: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """
    The partners in the structure with the largest score and, where true partners are given, cost.
    """

def fold_expectations(bases: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], max_loop: int, max_hairpin: int) -> tuple[float, Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """
    log of the sum of exp(score) over all structures, and the expected counts of the weights.
    """

def segments_best(token: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], last: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], length: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], pair: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """
    The segmentation with the largest score: start, end and label of each segment, one after the other.
    """

def segments_expectations(token: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], last: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], length: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], pair: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], token_out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], first_out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], last_out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], length_out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], pair_out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> float:
    """
    log of the sum of exp(score) over all segmentations; the outputs, 0 before, become expected counts.
    """
