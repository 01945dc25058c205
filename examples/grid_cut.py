"""Denoise black and white images: a model of one's own on a grid of pixels, whose best output is a minimum cut.

A pixel that is bright is likely white, and neighbors are likely alike. How much so is learned: the weights of unlike
neighbors are at least 0, because only then is the best image a minimum cut. Needs PyMaxflow: `pip install bmrm[grid]`.
"""

import maxflow
import numpy as np

import bmrm

ACROSS = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 0]])  # an edge to the right of each pixel


class GridModel(bmrm.StructuredModel):
    """Images y of 0 and 1, scored by w_0 <x, y> + w_1 sum(y) - w_2 (unlike across) - w_3 (unlike below)."""

    dim = 4

    def joint_feature(self, x, y):
        return np.array([np.sum(x * y), y.sum(), -np.sum(y[:, 1:] != y[:, :-1]), -np.sum(y[1:] != y[:-1])], dtype=float)

    def delta(self, y, other):
        return float(np.sum(y != other))

    def argmax(self, x, w):
        return self.cut(w[0] * x + w[1], w)

    def augmented_argmax(self, x, y, w):
        return self.cut(w[0] * x + w[1] + (1 - 2 * y), w)  # a white pixel costs 1 where black is true, and is saved 1

    def cut(self, white, w):
        graph = maxflow.GraphFloat()
        pixels = graph.add_grid_nodes(white.shape)
        graph.add_grid_edges(pixels, weights=w[2], structure=ACROSS, symmetric=True)
        graph.add_grid_edges(pixels, weights=w[3], structure=ACROSS.T, symmetric=True)
        graph.add_grid_tedges(pixels, np.maximum(-white, 0.0), np.maximum(white, 0.0))
        graph.maxflow()
        return graph.get_grid_segments(pixels).astype(int)


def images(rng, n, size=24, noise=0.8):
    """Return noisy and true images of a few disks."""
    rows, columns = np.mgrid[:size, :size]
    Y = []
    for _ in range(n):
        disks = zip(rng.uniform(0, size, 4), rng.uniform(0, size, 4), rng.uniform(2, size / 4, 4))
        Y.append(
            np.any([(rows - r) ** 2 + (columns - c) ** 2 < radius**2 for r, c, radius in disks], axis=0).astype(int)
        )
    return [y - 0.5 + noise * rng.normal(size=y.shape) for y in Y], Y


def main():
    rng = np.random.default_rng(0)
    model, (X, Y), (X_test, Y_test) = GridModel(), images(rng, 20), images(rng, 10)
    risk = bmrm.StructuredRisk(X, Y, bmrm.losses.StructuredHinge(model))
    attractive = bmrm.regularizers.L2(bounds=([-np.inf, -np.inf, 0.0, 0.0], np.inf))
    result = bmrm.solve(bmrm.Problem(risk, attractive, lam=0.1), tol=1e-3)
    print(result)
    by_cut = np.mean([model.argmax(x, result.w) == y for x, y in zip(X_test, Y_test)])
    by_pixel = np.mean([(x > 0.0) == y for x, y in zip(X_test, Y_test)])
    print(f"weights {np.round(result.w, 2)}: pixels right {by_cut:.3f}, each by itself {by_pixel:.3f}")
    return result, by_cut, by_pixel


if __name__ == "__main__":
    main()
