"""Gradient steps with momentum, averaged: the method for planes that come with noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from bmrm._deadline import look
from bmrm._errors import DataError
from bmrm._traits import Trait
from bmrm.problem import Problem
from bmrm.regularizers import L2, Separable
from bmrm.risks.base import Array
from bmrm.risks.noise import Noise
from bmrm.solvers.base import Solver, Start, Step

# How far noise alone may carry w over a run, in sizes of a trained w. 1, 3, 10 and no limit end 0.097, 0.058, 0.078 and
# 0.295 above the optimum on a9a (logistic, lam 1e-4, epsilon 0.1, 100 answers), and 0.032, 0.014, 0.017 and 0.016 with
# epsilon 0.5; from epsilon 2 on they differ by 0.003.
_REACH = 3.0


@dataclass(frozen=True)
class HeavyBall(Solver, name="heavy_ball"):
    """Polyak's heavy ball with proximal steps, and the average of the second half of its points.

    The loop, with L about the largest second derivative of R and D about the norm of a trained w::

        step = min(1 / (L + lam), 3 (1 - momentum) D / (sigma sqrt(d T)))
        for t = 1, ..., T
            a, b = the plane at w, with noise
            v    = w + momentum (w - previous w) - step a
            w    = argmin over u of step lam Omega(u) + 1/2 |u - v|^2
        w = the mean of the points of the second half

    T is the number of planes that the owners' budget of privacy pays for. With noise, solvers that trust a single
    plane lose: in simulations of a9a (rows of norm 2, hinge, lam 1e-3, 100 answers, epsilon 0.5) this one ended 0.02
    above the optimum, `bmrm` 0.14.

    The certificate holds with probability 1 - failure (`Noise`). It uses means over fixed sets of steps only, because
    these have the least noise::

        J(mean of w_t) <= mean of J~(w_t) + deviation               (J is convex; J~ is lam Omega + the noisy plane)
        min J          >= min over w of lam Omega(w) + <a~, w> + b~ - z sqrt((sigma |w|)^2 + sigma_b^2) / sqrt(m)

    In the second line a~ and b~ are means of m planes. The minimizer w* is the same whatever the noise, so the noise at
    w* is normal, with no factor sqrt(d).

    Parameters
    ----------
    momentum : float
        0.9. Without momentum 100 steps leave a run unfinished (a9a, logistic, lam 1e-4, epsilon 8: 0.044 above the
        optimum, and 0.003 with 0.9). 0.95 ends higher on a9a for epsilon 0.5, in all settings tried.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(-1.0, 1.0, 400).reshape(200, 2)
    >>> owner = bmrm.Owner((X, np.where(X[:, 0] > 0, 1, -1)), privacy=bmrm.Privacy(1.0, 1e-6, row_norm=1.0))
    >>> with bmrm.OwnersRisk([owner], "hinge", lam=0.1) as risk:
    ...     bmrm.solve(risk.problem, "heavy_ball").status.name
    'SPENT'

    References
    ----------
    Polyak (1964), Some methods of speeding up the convergence of iteration methods.
    """

    momentum: float = 0.9

    def __post_init__(self) -> None:
        if not (isinstance(self.momentum, (int, float)) and 0.0 <= self.momentum < 1.0):
            raise ValueError(f"parameter 'momentum' of solver 'heavy_ball' must lie in [0, 1), got {self.momentum!r}")

    needs = frozenset({Trait.NOISE})
    resumable = False
    takes_noise = True

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        """Yield one step for each plane, until no more are answered."""
        risk, regularizer, lam = problem.risk, problem.regularizer, problem.lam
        noise = risk.planes_noise
        assert noise is not None
        if noise.answers < 1:
            raise DataError("the owners' budget of privacy is spent: there is no answer left to train with")
        spread = noise.normal * math.sqrt(risk.dim * noise.answers)  # of the sum of all noise
        rate = min(1.0 / (noise.bend + lam), _REACH * (1.0 - self.momentum) * noise.size / spread)
        seen = _Seen(problem, noise)
        w = before = noise.within(start.w)
        for k in range(1, noise.answers + 1):
            look()
            a, b = risk.at(w).plane
            seen.add(w, a, b)
            yield Step(*seen.proved(), ended=k == noise.answers)
            ahead = w + self.momentum * (w - before) - rate * a
            w, before = noise.within(regularizer.prox(ahead, rate * lam)), w


@dataclass
class _Seen:
    """The points and planes so far, and what the means over their second half prove."""

    problem: Problem
    noise: Noise
    points: list[Array] = field(default_factory=list)
    normals: list[Array] = field(default_factory=list)
    numbers: list[tuple[float, float, float]] = field(default_factory=list)  # J~, offset, variance at w
    upper: float = math.inf

    def add(self, w: Array, a: Array, b: float) -> None:
        """Note a plane; points of the first half are forgotten."""
        objective = self.problem.lam * self.problem.regularizer.value(w) + float(a @ w) + b
        self.points.append(w)
        self.normals.append(a)
        self.numbers.append((objective, b, self.noise.variance(w)))
        k = len(self.numbers)
        if k > 1 and k % 2 == 0:
            self.points.pop(0)
            self.normals.pop(0)

    def proved(self) -> tuple[Array, float, float]:
        """Return the mean of the points of the second half, an upper bound of J there and a lower bound of min J."""
        m = len(self.points)
        objectives, offsets, variances = np.array(self.numbers[-m:]).T
        share = 0.5 * self.noise.failure / self.noise.answers  # for each bound of each step
        upper = float(objectives.mean()) + self.noise.deviation(float(variances.sum()) / m**2, m, share)
        self.upper = min(self.upper, upper)
        z = self.noise.quantile(share) / math.sqrt(m)
        a, b = np.mean(self.normals, axis=0), float(offsets.mean())
        return np.mean(self.points, axis=0), upper, min(self._lower(a, b, z), upper)

    def _lower(self, a: Array, b: float, z: float) -> float:
        """Return the bound that a mean plane proves whose noise at w is at most z sqrt((sigma |w|)^2 + sigma_b^2)."""
        regularizer, lam, floor = self.problem.regularizer, self.problem.lam, self.problem.risk.floor
        b -= z * self.noise.offset
        if type(regularizer) is L2 and regularizer.weights is None:
            # max over theta in [0, 1] of theta b + (1 - theta) floor - theta^2 slope^2 / (2 lam)
            slope = float(np.linalg.norm(a)) + z * self.noise.normal
            theta = min(1.0, max(0.0, (b - floor) * lam / slope**2))
            return floor + theta * (b - floor) - 0.5 * (theta * slope) ** 2 / lam
        radius = regularizer.reach(np.ones(a.size), max(self.upper - floor, 0.0) / lam)  # at least |w*|_1
        far = regularizer.plane_bound(lam, a, b - z * self.noise.normal * radius, floor)
        if not isinstance(regularizer, Separable):
            return far
        # |w| <= |w|_1, and a penalty of each |w_j| is least where all slopes point away from 0 and are as steep
        return max(far, regularizer.plane_bound(lam, np.abs(a) + z * self.noise.normal, b, floor))
