"""An owner that is lost under masks: the run ends with its name, or goes on without it where three others remain."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from commands import bad, good
from parties import parties, rows

import bmrm
from bmrm import LinearRisk, OwnersRisk, Problem, solve, solve_owners
from bmrm.owners import Identity, OwnerError, Refused

pytest.importorskip("cryptography", reason="masks need cryptography")


@pytest.fixture
def data(rng):
    return rows(rng)


class Leaving:
    """A monitor that closes the server of some owners after a number of steps, one after the other."""

    def __init__(self, servers, after=2):
        self.servers, self.left, self.after = list(servers), after, after

    def __call__(self, record):
        self.left -= 1
        if self.left == 0 and self.servers:
            self.servers.pop(0).close()
            self.left = self.after


@contextlib.contextmanager
def serving(owners):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(bmrm.ShardServer(owner)) for owner in owners]


def addresses(servers):
    return [server.address for server in servers]


@contextlib.contextmanager
def running(owners):
    """Give servers of owners, and the sum of their risks under masks."""
    with serving(owners) as servers, OwnersRisk(addresses(servers), "logistic", lam=0.001, masked=True) as risk:
        yield servers, risk


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("solver", ["bmrm", "lbfgs"])
def test_a_run_survives(solver, masked, data):
    X, y = data
    options = {"lam": 0.001, "masked": masked, "intercept": True}
    with serving(parties(X, y, 4)) as servers, OwnersRisk(addresses(servers), "logistic", **options) as risk:
        first = risk.parts.number
        with pytest.warns(UserWarning, match=f"{servers[1].address} is lost: the run goes on for the 3 owners") as said:
            result = solve_owners(risk, solver, tol=1e-6, monitor=Leaving([servers[1]]))
        assert len(said) == 1
        assert risk.owners.n_rows == 225
        assert risk.owners.names == [server.address for place, server in enumerate(servers) if place != 1]
        assert risk.parts.number != first
    left = np.arange(len(y)) % 4 != 1
    exact = solve(Problem(LinearRisk(X[left], y[left], "logistic", intercept=True), "l2", 0.001), tol=1e-9)
    assert result.converged
    assert result.certificate.lower <= exact.certificate.upper
    assert exact.certificate.lower <= result.certificate.upper


def test_two_leave_one_after_the_other(data):
    with running(parties(*data, 5)) as (servers, risk):
        with pytest.warns(UserWarning, match="is lost") as said:
            result = solve_owners(risk, "bmrm", tol=1e-6, monitor=Leaving(servers[:2]))
        assert result.converged
        assert len(said) == 2
        assert len(risk.owners.names) == 3
        assert risk.best_w is not None


def test_the_run_goes_on_where_it_was(data):
    with running(parties(*data, 4)) as (servers, risk):
        asked, go_on = [], risk.go_on_without

        def noted(lost):
            best = risk.best_w
            go_on(lost)
            risk.parts.watchers.append(lambda w, found, shards: asked.append(w))
            asked.append(best)

        risk.go_on_without = noted
        with pytest.warns(UserWarning, match="is lost"):
            assert solve_owners(risk, "bmrm", tol=1e-6, monitor=Leaving(servers[:1], 5)).converged
        assert asked[0].any()
        np.testing.assert_array_equal(asked[1], asked[0])


def test_fewer_than_three_others_end_it(data):
    with running(parties(*data, 3)) as (servers, risk):
        gone = servers[2].address
        with pytest.raises(OwnerError, match=f"{gone}: the connection is lost.* 2 other owners .* without {gone}"):
            solve_owners(risk, "bmrm", tol=1e-6, monitor=Leaving(servers[2:]))


def test_solve_ends_with_the_name_and_the_way_out(data):
    says = "the connection is lost.*masks do not cancel: start again without it"
    with running(parties(*data, 4)) as (servers, risk), pytest.raises(OwnerError, match=says) as found:
        solve(risk.problem, "bmrm", tol=1e-6, monitor=Leaving(servers[3:]))
    assert str(found.value).startswith(servers[3].address)


def test_owners_who_need_all_their_peers(data):
    X, y = data
    identities = [Identity() for _ in range(4)]
    peers = [identity.fingerprint for identity in identities]
    owners = [
        bmrm.Owner((X[s::4], y[s::4]), min_rows=10, identity=identities[s], peers=peers, masked_only=3 if s else None)
        for s in range(4)
    ]
    with (
        running(owners) as (servers, risk),
        pytest.warns(UserWarning, match="is lost"),
        pytest.raises(Refused, match="3 owners are in this run"),
    ):
        solve_owners(risk, "bmrm", tol=1e-6, monitor=Leaving(servers[3:]))


def test_what_was_told_before_stays_masked(data):
    """Answers to the round in which an owner was lost are noise, and that round is answered no second time."""
    owners = parties(*data, 4)
    with OwnersRisk(owners, "hinge", lam=0.1, masked=True) as risk:
        lost = risk.owners.placed.channels[3]
        number, w = risk.parts.number, np.full(5, 0.1)

        def gone(request):
            raise bmrm.owners.client.OwnerLost(f"{lost.name}: gone", [lost.name])

        lost.send = gone
        with pytest.raises(OwnerError, match="owner 3: gone"):
            risk.evaluate(w)
        rounds = [owner._runs[number].masks.round for owner in (c._session for c in risk.owners.placed.channels[:3])]
        assert rounds == [risk.parts._round] * 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            risk.go_on_without(bmrm.owners.client.OwnerLost("gone", [lost.name]))
        X, y = data
        left = np.arange(len(y)) % 4 != 3
        assert risk.evaluate(w)[0] == pytest.approx(LinearRisk(X[left], y[left], "hinge").evaluate(w)[0], abs=1e-9)


def test_command_line(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = data
    with serving(parties(X, y, 4)) as servers:
        owners = ",".join(addresses(servers))
        common = ("train", "--owners", owners, "--loss", "logistic", "--lam", "1e-3", "--masked", "--tol", "1e-6")
        start = OwnersRisk._start

        def leaving(self, *given):
            start(self, *given)
            servers[2].close()

        monkeypatch.setattr(OwnersRisk, "_start", leaving)
        done = good(*common, "--survive", "--model", "m.bmrm")
        assert f"warning: {servers[2].address} is lost: the run goes on for the 3 owners" in done.stderr
        assert "225 rows" in done.stdout
        assert bmrm.load("m.bmrm").status.name == "CONVERGED"
        assert f"{servers[2].address}: cannot be reached" in bad(*common, "--model", "none.bmrm")
