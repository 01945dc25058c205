"""Forgetting is a failing test: everything in the package is registered, documented, exemplified and compared."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from catalogue import all_losses, scalar_losses
from reference import models, naive, sets

import bmrm
from bmrm import _core
from bmrm._registry import UnknownName
from bmrm.losses import LOSSES, Loss
from bmrm.regularizers import REGULARIZERS, Regularizer
from bmrm.solvers import SOLVERS, Solver

CATALOGUE = {
    "losses": [
        "perceptron",
        "squared_perceptron",
        "hinge",
        "squared_hinge",
        "huber_hinge",
        "exponential",
        "logistic",
        "novelty",
        "nu_novelty",
        "least_squares",
        "least_absolute",
        "quantile",
        "epsilon_insensitive",
        "squared_epsilon_insensitive",
        "huber",
        "poisson",
        "piecewise_quadratic",
        "multiclass_hinge",
        "scaled_multiclass_hinge",
        "softmax",
        "multivariate_regression",
        "multilabel_hinge",
        "hierarchical_hinge",
        "hierarchical_softmax",
        "nu_hinge",
        "nu_epsilon_insensitive",
        "roc_area",
        "fbeta",
        "precision_at_k",
        "recall_at_k",
        "break_even",
        "ordinal",
        "pairwise_rank",
        "ndcg",
        "ndcg_pairs",
        "mrr",
        "expected_rank_utility",
    ],
    "regularizers": ["l2", "l1", "elastic_net", "zero"],
    "solvers": [
        "bmrm",
        "bmrm_line",
        "ls_bmrm",
        "lbfgs",
        "scipy",
        "auto",
        "subgradient_bfgs",
        "subgradient_lbfgs",
        "hybrid",
        "subgradient",
        "owlqn",
        "owlqn_star",
        "proximal_bundle",
        "sgd",
        "pegasos",
        "folos",
        "sgd_qn",
        "adaptive_online",
        "proximal_online",
        "dual_coordinate",
        "interior_point",
        "semismooth_newton",
        "newton",
        "coordinate",
    ],
}
REGISTRIES = {"losses": LOSSES, "regularizers": REGULARIZERS, "solvers": SOLVERS}


def is_ours(cls: type) -> bool:
    return cls.__module__.startswith("bmrm.")


REGISTERED = [cls for registry in REGISTRIES.values() for cls in registry.values() if is_ours(cls)]


def modules() -> list[str]:
    """Return the names of all modules of the package that exist, compiled ones excepted."""
    return ["bmrm", *(m.name for m in pkgutil.walk_packages(bmrm.__path__, "bmrm.") if m.name != "bmrm._core")]


def below(base: type) -> list[type]:
    """Return every subclass defined in the base's own package, at any depth."""
    package = base.__module__.rpartition(".")[0] + "."
    found = [c for cls in base.__subclasses__() for c in (cls, *below(cls))]
    return [cls for cls in found if cls.__module__.startswith(package)]


@pytest.mark.parametrize("kind", REGISTRIES)
def test_catalogue_is_complete(kind):
    assert set(CATALOGUE[kind]) <= set(REGISTRIES[kind])


@pytest.mark.parametrize(("base", "registry"), [(Loss, LOSSES), (Regularizer, REGULARIZERS), (Solver, SOLVERS)])
def test_every_concrete_class_is_registered(base, registry):
    """Concrete: not the base of another class."""
    for cls in set(below(base)):
        is_base = any(issubclass(other, cls) for other in registry.values() if other is not cls)
        if not is_base:
            assert registry.get(cls.name) is cls, f"{cls.__name__} is not registered"


@pytest.mark.parametrize("cls", REGISTERED, ids=lambda cls: cls.name)
def test_names_and_documentation(cls):
    assert cls.name == cls.name.lower()
    assert cls.name.isidentifier()
    document = inspect.getdoc(cls)
    first = document.split("\n")[0]
    assert first.endswith("."), first
    assert "Examples\n--------" in document
    assert ">>>" in document
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    if fields:
        assert "Parameters\n----------" in document
        for name in fields:
            assert f"{name} : " in document, f"parameter '{name}' of '{cls.name}' is not documented"


@pytest.mark.parametrize("cls", [c for c in REGISTERED if issubclass(c, (Loss, Regularizer))], ids=lambda c: c.name)
def test_the_first_line_is_a_formula(cls):
    first = inspect.getdoc(cls).split("\n")[0]
    assert ":" in first, "formula, colon, what it is"
    assert any(sign in first for sign in ("max(", "|", "^", "exp(", "log(", "sum_")), first


@pytest.mark.parametrize("cls", list(LOSSES.values()), ids=lambda cls: cls.name)
def test_losses_have_examples_and_counterparts(cls):
    assert cls.examples()
    assert all(type(loss) is cls for loss in cls.examples())
    assert len(set(cls.examples())) == len(cls.examples())
    assert cls.name in sets.TERMS or (cls.name in naive.NAIVE and cls.name in models.LOSSES)
    assert (cls.name in sets.TERMS) == (cls.couples != "row")


@pytest.mark.parametrize("cls", list(REGULARIZERS.values()), ids=lambda cls: cls.name)
def test_regularizers_have_examples_and_counterparts(cls):
    assert all(type(regularizer) is cls for regularizer in cls.examples(3))
    assert cls.name in models.REGULARIZERS


def test_every_compiled_loss_has_a_class():
    assert set(_core.loss_names()) <= set(LOSSES)
    for loss in all_losses():
        assert (loss.kernel() is not None) == (loss in scalar_losses())


@pytest.mark.parametrize(
    ("get", "wrong", "hint"),
    [
        (bmrm.losses.get, "hinje", "'hinge'"),
        (bmrm.losses.get, "squared_hing", "'squared_hinge'"),
        (bmrm.regularizers.get, "l3", "'l2'"),
        (bmrm.solvers.get, "bmrn", "'bmrm'"),
        (bmrm.solvers.get, "lsbmrm", "'ls_bmrm'"),
    ],
)
def test_wrong_names_are_answered_with_near_ones(get, wrong, hint):
    with pytest.raises(UnknownName, match=hint):
        get(wrong)


def test_wrong_parameters_are_named():
    with pytest.raises(ValueError, match="no parameter 'taux'; accepted: tau"):
        bmrm.losses.get("quantile", taux=0.5)
    with pytest.raises(ValueError, match="accepted: none"):
        bmrm.losses.get("hinge", h=0.5)


@pytest.mark.parametrize(
    ("name", "parameter", "bad"),
    [
        ("quantile", "tau", [0.0, 1.0, -1.0, np.nan]),
        ("huber", "delta", [0.0, -1.0, np.inf, np.nan]),
        ("huber_hinge", "h", [0.0, -1.0, np.nan]),
        ("epsilon_insensitive", "eps", [-0.1, np.nan]),
        ("squared_epsilon_insensitive", "eps", [-0.1, np.inf]),
        ("novelty", "rho", [np.nan, np.inf]),
        ("nu_novelty", "nu", [0.0, 1.0, np.nan]),
        ("fbeta", "beta", [0.0, -1.0, np.inf, np.nan]),
        ("precision_at_k", "k", [0, -1, 0.0, 1.0, 1.5, np.nan, True, "2"]),
        ("recall_at_k", "k", [0, -0.5, 2.0]),
        ("ndcg", "k", [0, -1, 0.5, True]),
        ("ndcg_pairs", "k", [0, -1, 0.5, True]),
        ("expected_rank_utility", "half_life", [1.0, 0.5, np.inf, np.nan]),
    ],
)
def test_parameters_out_of_range(name, parameter, bad):
    for value in bad:
        with pytest.raises(ValueError, match=f"'{parameter}'"):
            bmrm.losses.get(name, **{parameter: value})


def test_objects_pass_through():
    for registry, get in (
        (LOSSES, bmrm.losses.get),
        (SOLVERS, bmrm.solvers.get),
        (REGULARIZERS, bmrm.regularizers.get),
    ):
        made = next(iter(registry.values()))()
        assert get(made) is made


@pytest.mark.parametrize("module", modules())
def test_doctests(module):
    result = doctest.testmod(importlib.import_module(module), raise_on_error=False)
    assert result.failed == 0


def test_public_names():
    for name in bmrm.__all__:
        lazy = bmrm._LAZY.get(name)
        if lazy is None or lazy in modules():
            assert getattr(bmrm, name) is not None
    checks = {"check_loss", "check_regularizer", "check_risk", "check_solver", "check_structured_model"}
    assert set(bmrm.testing.__all__) == checks | {"Finding", "Report", "hunt", "hunt_case"}
