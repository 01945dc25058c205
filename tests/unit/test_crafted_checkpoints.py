"""Checkpoints with a valid checksum that somebody changed: no wrong objective, and errors of one type."""

import json

import numpy as np
import pytest

import bmrm
from bmrm import Checkpoint, LinearRisk, Problem, solve
from bmrm._errors import ContradictionError, DataError, FloorError
from bmrm.checkpoint import _FORMAT, _FORMAT_VERSION, _kinds, _sections, _write
from bmrm.checkpoint_file import Section
from bmrm.data.archive import parse_archive
from bmrm.problem import missing
from bmrm.solvers import SOLVERS

STRANGE = [
    None,
    True,
    -1,
    2**70,
    1e308,
    "text",
    {"list": [], "id": 0},
    {"float": "nan"},
    {"float": "-inf"},
    {"tuple": []},
]


def problem(loss):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 4))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    return Problem(LinearRisk(X, y, loss, intercept=True), "l2", 1e-3)


def read(path):
    header, arrays = parse_archive(path.read_bytes(), _FORMAT, _FORMAT_VERSION, _kinds)
    return _sections(header["sections"], arrays)


def places(tree, found):
    """Collect the containers of the tree with a key for each leaf."""
    for key, value in list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)):
        found.append((tree, key))
        if isinstance(value, (dict, list)):
            places(value, found)
    return found


def changed(section, rng):
    """Return a section with one value of its tree, or some numbers of one array, replaced."""
    arrays = dict(section.arrays)
    tree = json.loads(section.tree)
    if arrays and rng.random() < 0.4:
        kind = sorted(arrays)[rng.integers(len(arrays))]
        array = arrays[kind] = arrays[kind].copy()
        if array.size:
            at = rng.integers(array.size)
            array[at] = (
                [0, 1, 127, 100][rng.integers(4)]
                if array.dtype.kind != "f"
                else rng.normal() * 10.0 ** rng.integers(-3, 9)
            )
        return Section(json.dumps(tree), arrays)
    found = places(tree, [])
    if found:
        where, key = found[rng.integers(len(found))]
        where[key] = STRANGE[rng.integers(len(STRANGE))]
    return Section(json.dumps(tree), arrays)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.filterwarnings("ignore")
def test_changed_files_are_refused_or_give_the_objective_of_their_w(solver, tmp_path):
    made = next((p for p in map(problem, ("hinge", "logistic")) if not missing(SOLVERS[solver](), p)), None)
    if made is None:
        pytest.skip("the solver fits neither hinge nor logistic risks in memory with l2")
    path, rng = tmp_path / "run", np.random.default_rng(sum(map(ord, solver)))
    solve(made, solver, tol=1e-9, max_iter=3, checkpoint=path)
    sections = read(path)
    names = [name for name in sections if not name.endswith("about")]
    for _ in range(60):
        name = names[rng.integers(len(names))]
        _write(path, sections | {name: changed(sections[name], rng)})
        try:
            result = solve(
                made, solver, tol=1e-4, max_iter=6, max_seconds=5.0, checkpoint=Checkpoint(path, resume=True)
            )
        except (DataError, ContradictionError, FloorError):
            continue
        assert result.certificate.upper >= made.objective(result.w) * (1.0 - 1e-12)
        assert result.certificate.lower <= made.objective(result.w) * (1.0 + 1e-9)


@pytest.fixture
def converged(tmp_path):
    path = tmp_path / "run"
    solve(problem("hinge"), "bmrm", tol=1e-6, checkpoint=path)
    return path


def with_result(path, **changes):
    sections = read(path)
    result = sections["0.result"].value()
    sections["0.result"] = Section.of(result | {name: change(result[name]) for name, change in changes.items()})
    _write(path, sections)


def resumed(path):
    return solve(problem("hinge"), "bmrm", tol=1e-6, checkpoint=Checkpoint(path, resume=True))


def test_another_w_does_not_get_the_old_objective(converged):
    with_result(converged, w=lambda w: w + 1.0)
    with pytest.raises(DataError, match=r"run: .*its objective is .*, and that of its w is"):
        resumed(converged)


def test_an_objective_below_that_of_w_is_refused(converged):
    with_result(converged, bounds=lambda bounds: (0.5 * bounds[1], 0.5 * bounds[1]))
    with pytest.raises(DataError, match="its objective is"):
        resumed(converged)


def test_a_lower_bound_above_the_objective_is_refused(converged):
    with_result(converged, bounds=lambda bounds: (2.0 * bounds[0], 2.0 * bounds[0]))
    with pytest.raises(DataError, match="its lower bound is"):
        resumed(converged)


def test_planes_above_the_risk_are_refused(tmp_path):
    made, path = problem("hinge"), tmp_path / "run"
    solve(made, "bmrm", tol=1e-9, max_iter=3, checkpoint=path)
    sections, known = read(path), {"risk": made.risk, "regularizer": made.regularizer}
    state = sections["0.state"].value(known)
    state["bundle"].offsets[-1] += 10.0
    sections["0.state"] = Section.of(state, known)
    _write(path, sections)
    with pytest.raises(DataError, match=r"its plane \d+ is .* at its w, where the risk is"):
        resumed(path)


def test_errors_of_a_users_risk_stay_what_they_are(tmp_path):
    class Mine(bmrm.risks.Risk):
        dim, floor = 1, 0.0
        broken = False

        def evaluate(self, w):
            if self.broken:
                raise KeyError("mine")
            return float((w[0] - 1.0) ** 2), 2.0 * (w - 1.0)

    made, path = Problem(Mine(), "l2", 1e-3), tmp_path / "run"
    solve(made, "bmrm", tol=1e-12, max_iter=2, checkpoint=path)
    Mine.broken = True
    with pytest.raises(KeyError, match="mine"):
        solve(made, "bmrm", tol=1e-12, checkpoint=Checkpoint(path, resume=True))
