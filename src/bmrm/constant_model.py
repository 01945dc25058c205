"""Whether a fitted model predicts one thing for everybody, and the likely cause with its cure."""

from __future__ import annotations

import numpy as np

from bmrm._traits import Trait
from bmrm.certificate import Certificate
from bmrm.losses import Loss, NuNovelty
from bmrm.losses.nu import NuHinge
from bmrm.losses.ranking import PermutationLoss
from bmrm.losses.scores import WholeSetLoss
from bmrm.problem import Problem
from bmrm.risks import LinearRisk
from bmrm.risks.base import Array

# Part of J that w must gain over the constant alone. Predicted numbers that gain less differ by less than a thousandth
# of the spread of the targets. An order of rows is useful at any scale, until rounding decides it.
_GAIN_OF_NUMBERS, _GAIN_OF_ORDER = 1e-6, 1e-12
# Part of sum_i |l_i| |x_i| that is left of X'l. The mean of m rows that are not centered is about 1 / sqrt(m) of their
# size, and centering in float32 leaves about 1e-7.
_CANCELED = 1e-6
_SURE = 1e-9  # relative gap at which a solution counts as exact

_NO_COLUMNS = "no column of X varies over the rows; check how X was made"
_LINEAR = (
    "and a linear score tells rows from the origin only; fit data that are not centered, or take "
    "bmrm.NoveltyDetector(features='kernel')"
)
_CENTERED = f"the columns of X have mean 0, as StandardScaler leaves them, {_LINEAR}"
_ORIGIN = f"the origin lies among the rows (a share nu = {{nu:g}} of them has mean 0), as in centered data, {_LINEAR}"
_OVERLAP = (
    "a share nu = {nu:g} of the rows has one mean in both classes, so no margin is above 0; raise nu, or take 'hinge'"
)
_QUERIES = (
    "the bound of the loss '{name}' is flat there: it is least where no document is told from another, for every lam, "
    "as noisy queries make it; take the loss 'ndcg_pairs' or 'pairwise_rank'"
)
_TIES = ", or ties='together'"
_WHOLE_SET = "w = 0 minimizes the bound of '{name}' for every lam; take another score, such as 'roc_area', or a hinge"
_NO_MARGIN = "w = 0 has no loss at all: '{name}' asks for no margin; take 'hinge' or 'logistic'"
_RARE = (
    "w = 0 minimizes the loss '{name}' for every lam, as it does where one class is rare and hard to tell from the "
    "other; give both the same total weight (class_weight='balanced'), or take 'logistic'"
)
_ITSELF = (
    "w = 0 minimizes the loss '{name}' itself for every lam; take another loss or other parameters of it, and check "
    "that the columns of X say something about the targets"
)
_GENERAL = "w = 0 is optimal; lower lam, and check that the features say something about the targets"
_WITHIN_GAP = (
    "no w is better by more than the proved gap, {gap:.1g} of the objective; the columns of X say next to nothing "
    "about the targets, or lam = {lam:g} is too large; lower lam, or tol to see more"
)


def constant_cause(problem: Problem, w: Array, certificate: Certificate) -> str | None:
    """Return why w predicts one thing for everybody, as a clause with the cure; None if it does not.

    w does so if its coordinates beside the constants are 0, or if J gains nothing by them: at most 1e-12 of J at the
    constants, where rounding begins, or 1e-6 if sizes of predictions count (regression), or their signs, if these are
    all the same. For losses without a scale (`nu_novelty`, `nu_hinge`), w must be a rounding error of X'l / lam. And it
    does so if one constant is within eps of all targets: what w is then, is the solver's choice.

    None is also returned where nothing else can be learned: for one row, or for equal targets of a regression.

    Parameters
    ----------
    problem : Problem
    w : array
        Where a run ended; it has converged.
    certificate : Certificate
        What was proved about w.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> from bmrm.constant_model import constant_cause
    >>> risk = bmrm.LinearRisk([[1.0], [-1.0]], [1, -1], "hinge")
    >>> result = bmrm.solve(bmrm.Problem(risk, "l1", lam=2.0))
    >>> constant_cause(bmrm.Problem(risk, "l1", lam=2.0), result.w, result.certificate)
    'lam = 2 is too large: w = 0 is optimal at least from lam = 1 on; lower it'
    """
    risk = problem.risk
    if not isinstance(risk, LinearRisk):
        return None if np.delete(w, risk.unpenalized).any() else _GENERAL
    if not _is_constant(problem, risk, w, certificate.upper) or _nothing_to_learn(risk):
        return None
    return _cause(problem, risk, w, certificate)


def _nothing_to_learn(risk: LinearRisk) -> bool:
    counted = risk.full_weight > 0.0
    if np.count_nonzero(counted) <= 1:
        return True
    if risk.loss.task not in ("regression", "multivariate") or not isinstance(risk.targets, np.ndarray):
        return False
    return not np.ptp(risk.targets[counted], axis=0).any()


def _alone(risk: LinearRisk, w: Array) -> Array:
    """Return w with nothing but its constants."""
    alone = w.copy()
    alone[: risk.n_outputs * risk.design.n_cols] = 0.0
    return alone


def _is_constant(problem: Problem, risk: LinearRisk, w: Array, upper: float) -> bool:
    loss = risk.loss
    if np.array_equal(_alone(risk, w), w) or _wide_tube(risk) is not None:
        return True
    if isinstance(loss, NuNovelty | NuHinge):  # J is 0 at w = 0 and has no scale
        return _is_rounding(problem, risk, w)
    penalty = problem.lam * problem.regularizer.value(w)
    if penalty > _GAIN_OF_NUMBERS * abs(upper):  # a minimum of lam Omega + R gains more than that: no pass is needed
        return False
    gain = _gain(problem, risk, w, upper)
    if gain > _GAIN_OF_NUMBERS:
        return not _columns_vary(risk)
    if gain <= _GAIN_OF_ORDER or isinstance(loss, WholeSetLoss):
        return gain <= _GAIN_OF_ORDER
    if loss.task == "classification":
        decided = loss.decide(risk.by_rows(risk.scores(w)))
        return bool(np.all(decided == decided[0]))
    return loss.task in ("regression", "multivariate")


def _gain(problem: Problem, risk: LinearRisk, w: Array, upper: float) -> float:
    """Return how much smaller J is at w than at its constants alone, as a part of the latter."""
    alone = problem.objective(_alone(risk, w))
    return (alone - upper) / abs(alone) if alone else 0.0


def _is_rounding(problem: Problem, risk: LinearRisk, w: Array) -> bool:
    """Whether lam w, which is -X'l at the minimum, is what rounding leaves of it; |l_i| <= p_i add up to nu."""
    d, nu = risk.design.n_cols, risk.loss.nu  # type: ignore[attr-defined]
    terms = np.sqrt(nu * risk.full_weight.max()) * np.linalg.norm(risk.norms[:d])
    return problem.lam * float(np.linalg.norm(w[:d])) <= _CANCELED * float(terms)


def _cause(problem: Problem, risk: LinearRisk, w: Array, certificate: Certificate) -> str:
    loss, lam = risk.loss, problem.lam
    if isinstance(loss, NuNovelty):
        return _ORIGIN.format(nu=loss.nu)
    if loss.task == "novelty":
        return _CENTERED if _is_centered(risk) else _too_large(lam)
    if not _columns_vary(risk):
        return _NO_COLUMNS
    if isinstance(loss, NuHinge):
        return _OVERLAP.format(nu=loss.nu)
    tube = _wide_tube(risk)
    if tube is not None:
        return tube
    from_here = _lam_of_zero(problem, risk, w)
    if 0.0 < from_here <= lam:
        known = "from" if Trait.SMOOTH_RISK in problem.traits else "at least from"
        return f"lam = {lam:g} is too large: w = 0 is optimal {known} lam = {from_here:.3g} on; lower it"
    if isinstance(loss, PermutationLoss):
        return _QUERIES.format(name=loss.name) + (_TIES if loss.ties == "rows" else "")
    gain = _gain(problem, risk, w, certificate.upper)
    if from_here > 0.0 or gain > max(_GAIN_OF_ORDER, certificate.relative_gap):
        return _too_large(lam)
    return _of_loss(loss, certificate).format(
        name=loss.name or type(loss).__name__, gap=certificate.relative_gap, lam=lam
    )


def _of_loss(loss: Loss, certificate: Certificate) -> str:
    """Return the cause where w = 0 is optimal for every lam, as far as is proved."""
    if certificate.upper == loss.floor == 0.0 and loss.task == "classification":
        return _NO_MARGIN
    if certificate.gap > _SURE * abs(certificate.upper):
        return _WITHIN_GAP
    if isinstance(loss, WholeSetLoss):
        return _WHOLE_SET
    return _RARE if loss.task == "classification" else _ITSELF


def _too_large(lam: float) -> str:
    return f"lam = {lam:g} is too large for data of this size: the regularizer outweighs the loss; lower it"


def _sums(risk: LinearRisk, weight: Array) -> Array:
    sums = np.empty(risk.design.n_cols)
    risk.design.matrix.tdot(weight, sums, risk.n_threads)
    return sums


def _is_centered(risk: LinearRisk) -> bool:
    """Whether the mean of each column is a rounding error of its size."""
    norms = risk.norms[: risk.design.n_cols] / np.sqrt(risk.design.n_rows)
    return bool(np.all(np.abs(_sums(risk, risk.full_weight)) <= _CANCELED * norms))


def _columns_vary(risk: LinearRisk) -> bool:
    m, k = risk.design.n_rows, risk.n_outputs
    squares = risk.norms[: k * risk.design.n_cols : k] ** 2 / m
    means = _sums(risk, np.full(m, 1.0 / m))
    return bool(np.any(squares - means**2 > _SURE * squares))


def _wide_tube(risk: LinearRisk) -> str | None:
    """Return the cause where the tube of half the width eps around a constant (0 without one) holds all targets."""
    eps = getattr(risk.loss, "eps", None)
    if eps is None or risk.loss.task != "regression":
        return None
    y = risk.targets if risk.offset is None else risk.targets - risk.offset
    y = y[risk.full_weight > 0.0]
    reach = 0.5 * float(np.ptp(y)) if risk.design.intercept else float(np.max(np.abs(y)))
    if reach > eps:
        return None
    spread = float(np.std(y))
    return (
        f"eps = {eps:g} of the loss '{risk.loss.name}' is as large as the targets differ: one constant is within "
        f"{reach:.3g} of all and has no loss; choose an eps below their standard deviation {spread:.3g}, such as "
        f"{0.1 * spread:.1g}"
    )


def _lam_of_zero(problem: Problem, risk: LinearRisk, w: Array) -> float:
    """Return a lam from which on w = 0 is optimal beside these constants: max_j |g_j| / u_j, u_j the weights of |w_j|.

    g is a subgradient of R there. It is the least such lam where R has one subgradient. 0 where absolute values do not
    count for some coordinate: then w = 0 is optimal for every lam, or for none.
    """
    n = risk.n_outputs * risk.design.n_cols
    alone = _alone(risk, w)
    weights = np.broadcast_to(problem.regularizer.extreme(alone, np.ones(risk.dim)), (risk.dim,))[:n]
    if n == 0 or not np.all(weights > 0.0):
        return 0.0
    return float(np.max(np.abs(risk.at(alone).subgradient[:n]) / weights))
