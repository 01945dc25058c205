"""What L-BFGS in the space of the rows keeps: its pairs with the recursion in coefficients, and its planes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm import _core
from bmrm._limits import check_length
from bmrm._states import kept
from bmrm.bundle.master import on_simplex
from bmrm.bundle.storage import mixture, products
from bmrm.risks.base import Array

_FLAT = 1e-12  # of |s| |y|: pairs of less curvature are not kept


@kept
class Pairs:
    """The last pairs (s, y), each as u and X v of v = S^-1 X'u, and their inner products.

    Parameters
    ----------
    most : int
        How many pairs are kept.
    size : int
        Of u.
    n_threads : int
        For products with the pairs.
    """

    def __init__(self, most: int, size: int, n_threads: int = 1) -> None:
        check_length(4 * most * (size + most), f"memory={most}")
        self.most, self._n_threads = most, n_threads
        self._u = np.empty((2 * most, size))  # s and y of each pair next to each other: those in use come first
        self._images = np.empty((2 * most, size))
        self._sy = np.zeros((most, most))  # <s_i, y_j>
        self._yy = np.zeros((most, most))
        self._order: list[int] = []  # places, the oldest first
        self._proposed: tuple[Array, Array, Array, Array] | None = None

    def __deepcopy__(self, known: dict[int, Any]) -> Pairs:
        """Return a copy; memory that is not in use yet is not touched."""
        other, used = Pairs(self.most, self._u.shape[1], self._n_threads), 2 * len(self._order)
        other._u[:used], other._images[:used] = self._u[:used], self._images[:used]
        other._sy[:], other._yy[:], other._order = self._sy, self._yy, self._order.copy()
        other._proposed = self._proposed  # never changed in place
        return other

    def __getstate__(self) -> dict[str, Any]:
        used = 2 * len(self._order)
        return vars(self) | {"_u": self._u[:used], "_images": self._images[:used], "_size": self._u.shape[1]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["most"], state.pop("_size"), state["_n_threads"])  # type: ignore[misc]
        for name in ("_u", "_images"):
            rows = state.pop(name)
            getattr(self, name)[: len(rows)] = rows
        vars(self).update(state)

    def clear(self) -> bool:
        """Forget all pairs; say whether there were any."""
        had, self._order, self._proposed = bool(self._order), [], None
        return had

    def propose(self, u: Array, image: Array, gamma: Array, g: Array) -> None:
        """Take a step and the gradient before it; the pair is complete at the next gradient."""
        self._proposed = (u, image, gamma, g)

    def direction(self, gamma: Array, g: Array) -> tuple[Array, Array]:
        """Return u and X d of d = -B g, B the inverse Hessian's estimate; a pair that was proposed is kept first."""
        if self._proposed is not None:
            u, image, before, g_before = self._proposed
            self._keep(u, image, gamma - before, g - g_before)
            self._proposed = None
        places, k = self._order, len(self._order)
        if not k:
            return -gamma, -g
        images = self._images[: 2 * k]
        found = products(images, gamma, self._n_threads)
        sq, yq = found[::2], found[1::2]
        alpha, beta = np.zeros(k), np.zeros(k)
        for i in reversed(places):
            alpha[i] = sq[i] / self._sy[i, i]
            sq = sq - alpha[i] * self._sy[:k, i]
            yq = yq - alpha[i] * self._yy[:k, i]
        last = places[-1]
        scale = self._sy[last, last] / self._yy[last, last]
        yq = scale * yq
        for i in places:
            beta[i] = alpha[i] - yq[i] / self._sy[i, i]
            yq = yq + beta[i] * self._sy[i, :k]
        weights = np.column_stack([-beta, scale * alpha]).ravel()
        u, image = (mixture(table, weights, self._n_threads) for table in (self._u[: 2 * k], images))
        return u - scale * gamma, image - scale * g

    def _keep(self, s: Array, s_image: Array, y: Array, y_image: Array) -> None:
        """Keep a pair in the place of the oldest, if its curvature is safely positive."""
        sy, yy, ss = _core.inner(s, y_image), _core.inner(y, y_image), _core.inner(s, s_image)
        if not (yy > 0.0 and ss > 0.0 and sy > _FLAT * np.sqrt(ss) * np.sqrt(yy)):
            return
        place = len(self._order) if len(self._order) < self.most else self._order.pop(0)
        self._order.append(place)
        used = 2 * len(self._order)
        self._u[2 * place], self._u[2 * place + 1] = s, y
        self._images[2 * place], self._images[2 * place + 1] = s_image, y_image
        k, with_y = used // 2, products(self._images[:used], y, self._n_threads)
        self._sy[:k, place] = with_y[::2]
        self._sy[place, :k] = products(self._images[:used], s, self._n_threads)[1::2]
        self._yy[:k, place] = self._yy[place, :k] = with_y[1::2]


@kept
class SlopePlanes:
    """The last planes by their slopes, with the images of their normals, and their best combination.

    Parameters
    ----------
    most : int
        How many planes are kept.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._planes: list[tuple[Array, Array, float]] = []
        self._gram: Array = np.zeros((0, 0))
        self._alpha: Array = np.zeros(0)

    def __deepcopy__(self, known: dict[int, Any]) -> SlopePlanes:
        """Return a copy that shares the planes: they are never changed."""
        other = SlopePlanes(self.most)
        other._planes, other._gram, other._alpha = self._planes.copy(), self._gram, self._alpha
        return other

    def add(self, slopes: Array, image: Array, offset: float) -> None:
        """Keep a plane, in the place of the one that counts least where there are too many.

        A plane whose numbers are too large to multiply is left out.
        """
        if not _core.inner(image, slopes) < np.inf:
            return
        if len(self._planes) == self.most:
            least = int(np.argmin(self._alpha))
            del self._planes[least]
            self._gram = np.delete(np.delete(self._gram, least, 0), least, 1)
        self._planes.append((slopes, image, offset))
        row = np.array([_core.inner(other, slopes) for _, other, _ in self._planes])
        row[-1] = max(row[-1], 0.0)  # a square, but for rounding
        gram = np.empty((row.size, row.size))
        gram[:-1, :-1], gram[-1], gram[:, -1] = self._gram, row, row
        self._gram = gram

    def solve(self, lam: float) -> float:
        """Find the best combination and return the bound that it seems to give."""
        if not self._planes:
            return -np.inf
        program, newest = _core.ActiveSetQp(np.ones(1)), np.zeros(len(self._planes))
        for k, row in enumerate(self._gram):
            program.add(row[: k + 1].copy(), np.ones(1))
        newest[-1] = 1.0
        program.set_start(newest)
        b = np.array([offset for _, _, offset in self._planes])
        self._alpha = on_simplex(program.solve(lam * b))
        return float(b @ self._alpha) - 0.5 / lam * float(self._alpha @ self._gram @ self._alpha)

    def combined(self) -> tuple[Array | None, float]:
        """Return the slopes and the offset of the best combination; None where there is no plane yet."""
        if not self._planes:
            return None, -np.inf
        total, offset = np.zeros_like(self._planes[0][0]), 0.0
        for alpha, (slopes, _, b) in zip(self._alpha, self._planes):
            if alpha > 0.0:
                total += alpha * slopes
                offset += alpha * b
        return total, offset
