"""Same objective for all: given time, every deterministic adapter reaches our certified optimum."""

from benchmark_utils.layout import make
from benchmark_utils.losses import LOSSES
from datasets.generated import Dataset
from objective import Objective
from runner.peers import missing, ours, peers

SETS = {"classification": "gen_small", "regression": "gen_small_heavy", "counts": "gen_small_counts"}
LAM = {"l2": 0.5, "l1": 0.03}  # large: a wrong factor then shows


def pairs():
    """Every loss with every regularizer."""
    return [(loss, regularizer) for loss in LOSSES for regularizer in ("l2", "l1")]


def cases(wanted=None):
    """Every deterministic adapter with every problem it takes."""
    checked = [adapter for adapter in peers(wanted) if adapter.reaches]
    return [(adapter, *pair) for adapter in checked for pair in pairs() if adapter.takes(*pair)]


def distance(adapter, loss, regularizer):
    """Smallest relative distance from the optimum on the ladder; negative below -1e-9 would be another objective."""
    data = make(Dataset, which=SETS[LOSSES[loss].task]).get_data()
    objective = make(Objective, loss=loss, regularizer=regularizer, lam=LAM[regularizer])
    objective.set_data(**data)
    values = []
    for solver, ladder in ((ours(), (1e-10,)), (adapter, adapter.ladder)):
        solver.set_objective(**objective.get_objective())
        for stop in ladder:
            solver.run(stop)
            values.append(objective.evaluate_result(**solver.get_result())["value"])
            if len(values) > 1 and values[-1] - values[0] <= adapter.reach(loss) * values[0]:
                break
    return (min(values[1:]) - values[0]) / values[0]


def main(wanted=None):
    """Print one line for each; the number of failures is the exit status."""
    for package in missing():
        print(f"SKIP {package} is not installed")
    failures = 0
    for adapter, loss, regularizer in cases(wanted):
        found = distance(adapter, loss, regularizer)
        good = -1e-9 <= found <= adapter.reach(loss)
        failures += not good
        print(f"{'PASS' if good else 'FAIL'} {adapter.label:36s} {loss:20s} {regularizer} {found:9.1e}", flush=True)
    return min(failures, 1)
