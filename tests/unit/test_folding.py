"""Folding: loops counted by hand, known structures, errors with the place, and learning from generated ones."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import bmrm
from bmrm.structured.folding import partners_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
AU, CG, GC, GU, UA, UG = range(6)
A, C, G, U = range(4)


@pytest.fixture
def model():
    return bmrm.FoldingModel()


@pytest.fixture
def data(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("structured_data")


def counts(model, x, y):
    """Return the counts above 0 by the kind of weight and the place among those of its kind."""
    phi = model.joint_feature(x, y)
    found = {name: phi[block] for name, block in model.blocks().items()}
    return {(name, int(k)): part[k] for name, part in found.items() for k in np.flatnonzero(part)}


def mismatch(pair, after, before):
    return pair * 16 + after * 4 + before


def test_several_hundred_weights(model):
    assert model.dim == 367
    assert sum(block.stop - block.start for block in model.blocks().values()) == 367


def test_a_hairpin(model):
    assert counts(model, "AGGGAAAACUCAA", ".(((....)))..") == {
        ("pairs", GC): 2,
        ("pairs", GU): 1,
        ("stacks", GC * 6 + GU): 1,
        ("stacks", GU * 6 + GC): 1,
        ("hairpin lengths", 1): 1,
        ("hairpin mismatches", mismatch(GC, A, A)): 1,
        ("exterior", 0): 1,
        ("exterior", 1): 3,
        ("exterior ends", GC): 1,
    }


def test_a_bulge_and_an_interior_loop(model):
    assert counts(model, "GACAUAGUGUAAAGC", "(.(..(...)...))") == {
        ("pairs", GC): 1,
        ("pairs", CG): 1,
        ("pairs", AU): 1,
        ("bulge lengths", 0): 1,
        ("interior lengths", 3): 1,
        ("asymmetry", 1): 1,
        ("interior mismatches", mismatch(CG, A, A)): 1,
        ("interior mismatches", mismatch(UA, A, U)): 1,
        ("hairpin lengths", 0): 1,
        ("hairpin mismatches", mismatch(AU, G, G)): 1,
        ("exterior", 0): 1,
        ("exterior ends", GC): 1,
    }


def test_a_multiloop(model):
    assert counts(model, "GAGAAACAUAAAACC", "(.(...).(...).)") == {
        ("pairs", GC): 2,
        ("pairs", UA): 1,
        ("hairpin lengths", 0): 2,
        ("hairpin mismatches", mismatch(GC, A, A)): 1,
        ("hairpin mismatches", mismatch(UA, A, A)): 1,
        ("multiloop", 0): 1,
        ("multiloop", 1): 2,
        ("multiloop", 2): 3,
        ("multiloop ends", CG): 1,
        ("multiloop ends", GC): 1,
        ("multiloop ends", UA): 1,
        ("exterior", 0): 1,
        ("exterior ends", GC): 1,
    }


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("GGGGAAAACCCC", "((((....))))"),
        ("GGGGCAAAACCCC", "((((.....))))"),
        ("AAAAAAAAAAAA", "............"),
        # a cloverleaf: four strong stems around a multiloop
        (
            "GGGCGCGAAGCCCGAAAGGGCAGCGGGAAACCGCAAGGCCGAAAGGCCACGCGCCC",
            "(((((((..((((....)))).((((....))))..((((....)))).)))))))",
        ),
    ],
)
def test_known_structures(model, data, x, y):
    w = data.folding_weights(model, np.random.default_rng(0))
    found = model.argmax(x, w)
    assert model.dot_bracket(found) == y


def test_costs_and_forms(model):
    y, other = "((...)).(...)", "(.....).(...)"
    assert model.delta(y, other) == model.delta(other, y) == 1.0
    assert model.delta(y, "." * 13) == 3.0
    assert model.dot_bracket(partners_of(y)) == y
    assert partners_of("(...)").tolist() == [4, -1, -1, -1, 0]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ("", "", "no bases"),
        (["G"], ".", "x must be a string over ACGU, got list"),
        ("GGTAAACC", "........", "letter 'T' at position 2"),
        ("GGaAAACC", "........", "letter 'a' at position 2"),
        ("GGAAACC", "......", "y has length 6, expected 7"),
        ("GGAAACC", "((...)x", "sign 'x' at position 6"),
        ("GGAAACC", "((...).", "bracket at position 0 is not closed"),
        ("GGAAACC", "(...)).", "bracket at position 5 closes none"),
        ("GGAAACC", "((..)).", "positions 1 and 4 encloses fewer than 3"),
        ("GAAAAAC", "(....).", "positions 0 and 5 is of bases that do not pair"),
        ("GGAAACC", [6, 5, -1, -1, -1, 1, -1], "position 0 has partner 6, which has another"),
        ("GGAAACC", [9, -1, -1, -1, -1, -1, -1], "position 0 has partner 9, which has another"),
        ("GGAAACC", [5, 6, -1, -1, -1, 0, 1], "positions 0 and 5 crosses that of 1 and 6"),
        ("GGAAACC", [0.5] * 7, "string of dots and brackets or a list of partners"),
        ("G" + 31 * "A" + "GAAACC", "(" + 31 * "." + "(...))", "31 unpaired bases, more than max_loop=30"),
    ],
)
def test_errors_name_the_example(model, x, y, message):
    with pytest.raises(ValueError, match=f"example 1: .*{message}"):
        bmrm.StructuredRisk(["GAAAC", x], ["(...)", y], bmrm.losses.StructuredHinge(model))


@pytest.mark.parametrize(("name", "value"), [("max_loop", 1), ("max_hairpin", 2), ("max_loop", 20000)])
def test_parameters_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"'{name}' must lie between"):
        bmrm.FoldingModel(**{name: value})


def test_the_sum_over_all_structures_of_a_long_sequence(model, data):
    rng = np.random.default_rng(0)
    x, w = "".join(rng.choice(list("ACGU"), size=80)), data.folding_weights(model, rng)
    value, expected = model.log_partition(x, w)
    best = float(w @ model.joint_feature(x, model.argmax(x, w)))
    assert best < value < best + 80.0
    step = 1e-5 * rng.normal(size=model.dim)
    change = model.log_partition(x, w + step)[0] - model.log_partition(x, w - step)[0]
    assert change == pytest.approx(2.0 * float(step @ expected), rel=1e-4)


def test_generated_structures(data):
    """Loops of all kinds are there, interior ones up to 30 bases."""
    model, X, Y = data.rna(np.random.default_rng(1))
    assert len(X) == 120
    assert 50 <= min(map(len, X)) <= max(map(len, X)) <= 150
    phi = np.sum([model.joint_feature(x, y) for x, y in zip(X, Y)], axis=0)
    blocks = model.blocks()
    assert all(phi[block].any() for block in blocks.values())
    assert np.flatnonzero(phi[blocks["interior lengths"]])[-1] + 2 == 30


def test_generated_structures_are_learned(data):
    model, X, Y = data.rna(np.random.default_rng(0), n=8, shortest=30, longest=50, noise=0.25)
    risk = bmrm.StructuredRisk(X, Y, bmrm.losses.StructuredHinge(model), n_threads=2)
    result = bmrm.solve(bmrm.Problem(risk, "l2", lam=0.01), tol=0.1)
    assert result.converged
    wrong = sum(model.delta(y, model.argmax(x, result.w)) for x, y in zip(X, Y))
    assert wrong < 0.1 * sum(np.count_nonzero(y >= 0) / 2 for y in Y)
