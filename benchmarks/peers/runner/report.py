"""The pages: a summary with the claims and the lost cells, and a table and a plot for each loss."""

import os
import platform
from fnmatch import fnmatch

import matplotlib
import numpy as np

from benchmark_utils.losses import LOSSES
from runner import claims, growth, memory
from runner.cells import TARGETS
from runner.measure import HOPELESS, MOST_SECONDS
from runner.peers import versions

matplotlib.use("Agg")
import matplotlib.pyplot as plt

UNEXPLAINED = "**not explained yet**"
COLORS = {"l2": "tab:blue", "l1": "tab:red"}


OTHERS = ("multiclass", "metrics", "ranking", "sequences")  # pages of other benchmarks beside these


def write(store, folder, every):
    """Write everything; `every` is how many cells a whole run has."""
    folder.mkdir(parents=True, exist_ok=True)
    losses = list(dict.fromkeys(cell.loss for cell, _ in store.cells()))
    for loss in losses:
        mine = [(cell, record) for cell, record in store.cells() if cell.loss == loss]
        found = [duel for target in TARGETS for duel in loss_duels(store, loss, target)]
        plot(loss, found, folder / f"{loss}.png")
        (folder / f"{loss}.md").write_text(page(loss, mine))
    others = [name for name in (*LOSSES, *OTHERS) if name not in losses and (folder / f"{name}.md").exists()]
    (folder / "index.md").write_text(summary(store, [*losses, *others], folder / "lost.md", every))
    print(f"{folder}: {len(losses)} losses, {len(store.cells())} cells")


def loss_duels(store, loss, target):
    """The duels of one loss."""
    families = {cell.family for cell, _ in store.cells()}
    return claims.duels(store, families, target, keep=lambda cell, record: cell.loss == loss)


def table(head, rows):
    """A Markdown table."""
    lines = ["| " + " | ".join(map(str, line)) + " |" for line in [head, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def environment():
    """What was compared, and on what."""
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"{os.cpu_count()} cores ({platform.machine()}), 2 threads; Python {platform.python_version()}, {packages}."


def entry(outcomes, best):
    """The times to both accuracies; those of the fastest in bold."""
    parts = []
    for target in TARGETS:
        outcome = outcomes.get(target)
        if outcome is None:
            parts.append("?")
        elif outcome["seconds"] is None:
            parts.append({"slower": ">", "not tried": "·"}.get(outcome.get("why"), "–"))
        else:
            text = f"{1e3 * outcome['seconds']:.3g}"
            parts.append(f"**{text}**" if outcome["seconds"] <= best[target] else text)
    return " / ".join(parts)


def page(loss, cells):
    """The page of one loss."""
    labels = list(dict.fromkeys(label for _, record in cells for label in record["peers"]))
    rows = []
    for cell, record in sorted(cells, key=lambda pair: (pair[0].regularizer, pair[0].data, -pair[0].lam)):
        everyone = {"auto": record["ours"], **record["peers"]}
        best = {t: claims.fastest(everyone, t)[1] or 0.0 for t in TARGETS}
        own = " / ".join(claims.fastest(record["own"], t)[0] or "auto" for t in TARGETS)
        times = [entry(everyone.get(label, {}), best) if label in everyone else "" for label in ("auto", *labels)]
        rows.append([cell.data, cell.regularizer, f"{cell.lam:g}", *times, own])
    notes = (
        "Milliseconds to a relative suboptimality of 1e-3 / 1e-6. `auto` stops by its own certificate; the others run "
        "with the loosest tolerance of their ladder that is good enough, which they cannot know. – did not arrive "
        "within the cap or on its ladder; > was stopped, being slower than the fastest peer; · not tried, having "
        "missed at a larger lam; ? the optimum is not known well enough. The last column names the fastest of our "
        "own methods."
    )
    title = f"# {loss.replace('_', ' ')}"
    head = ["data", "Omega", "lam", "auto", *labels, "best own"]
    picture = f"![times faster than the fastest peer]({loss}.png)"
    return "\n\n".join([title, environment(), notes, picture, table(head, rows)]) + "\n"


def plot(loss, found, path):
    """How many times faster than the fastest peer, for each cell; hollow where no peer arrived."""
    sets = sorted({duel.cell.data for duel in found})
    figure, axes = plt.subplots(1, 2, figsize=(10, 0.9 + 0.28 * max(len(sets), 3)), sharey=True)
    for axis, target in zip(axes, TARGETS):
        for duel in (duel for duel in found if duel.target == target):
            color = COLORS[duel.cell.regularizer]
            height = sets.index(duel.cell.data) + 0.09 * (np.log10(duel.cell.lam) + 3.5)
            fill = color if duel.arrived else "none"
            axis.plot(duel.ratio, height, "o", markersize=4, color=color, markerfacecolor=fill)
        axis.axvline(1.0, color="black", linewidth=0.8)
        axis.set_xscale("log")
        axis.set_yticks(range(len(sets)), sets, fontsize=7)
        axis.set_title(f"{loss.replace('_', ' ')}, {target:g}: times faster than the fastest peer", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


def explanations(path):
    """Patterns and reasons: lines ``- data/loss/regularizer/lam/accuracy: why``, with * and ? as in file names."""
    text = path.read_text().replace("\n  ", " ") if path.exists() else ""  # a reason may go on in the next lines
    lines = text.splitlines()
    split = [line[2:].split(": ", 1) for line in lines if line.startswith("- ") and ": " in line]
    return [(pattern.strip("` "), reason) for pattern, reason in split]


def why(duel, reasons):
    """The first reason whose pattern fits."""
    name = f"{duel.cell.key}/{duel.target:g}"
    return next((reason for pattern, reason in reasons if fnmatch(name, pattern)), UNEXPLAINED)


def memory_table(store):
    """What a fit takes on top of the data, if that was measured."""
    record = store.records.get(memory.KEY)
    if record is None:
        return []
    names = list(record["memory"])
    columns = zip(record["sizes"], record["data_bytes"], *record["memory"].values())
    rows = [
        [f"{m:,}".replace(",", " "), f"{data / 1e6:.1f}"]
        + [f"{taken / 1e6:.1f} ({taken / data:.1f} times)" if taken else "–" for taken in each]
        for m, data, *each in columns
    ]
    text = (
        f"Resident memory of one fit in a new process at its highest, on top of the process with the data, in MB: "
        f"quantile 0.5 with l1, {growth.COLUMNS} generated columns, lam {memory.LAM:g}, to {memory.TARGET:g}. – did "
        f"not end within {memory.SECONDS:g} s, or the system does not tell."
    )
    return ["## Memory", text, table(["rows", "data", *names], rows)]


def summary(store, pages, reasons, every):
    """The page that leads to the others."""
    lines = claims.lines(store)
    lost = claims.lost(store)
    rows = [
        [duel.cell.key, f"{duel.target:g}", claims.ms(duel.ours), f"{duel.name} {claims.ms(duel.other)}"]
        + [f"{duel.slower:.2f}", why(duel, explanations(reasons))]
        for duel in lost
    ]
    verdicts = [[line.partition(": ")[0].replace("|", ""), line.partition(": ")[2]] for line in lines]
    head = ["cell", "accuracy", "auto", "fastest peer", "times slower", "why"]
    text = [
        "# Against other packages",
        "Wall time to a relative suboptimality of 1e-3 and 1e-6 of J(w) = lam Omega(w) + 1/m sum_i l_i, without "
        'intercept. `bmrm.solve(..., "auto")` stops by its own certificate and includes the building of the risk '
        "from raw arrays; the others get the first tolerance of a ladder that meets the target, which nobody would "
        "know in practice, and include their conversion of the data. By turns, two threads, medians of 21 runs "
        "below 20 ms, single runs above 2 s; 3 ms are a tie; lam from 1e-1 to 1e-6, every second value (slow sets and "
        "the lasso: third; 20news_bigram and robust losses: sixth, the latter on every second set) on one set and "
        "those between on the next; a fit is capped at the larger of 1 s and 10 times ours (40 times for "
        "QuantileRegressor), "
        f"{MOST_SECONDS:g} s at most unless ours takes longer; where no peer arrives, its cap counts as its time. A "
        f"peer that would take more than {HOPELESS:g} caps, if its error went on falling as from one tolerance to the "
        "next, is not tried with tighter ones; a peer that misses is not tried at smaller lam and counts as missing "
        "there. "
        "`make bench-peers` repeats it; with `ARGS=--check` it shows that every peer minimizes the same objective. "
        "Means are geometric.",
        environment(),
        f"Measured here: {len(store.cells())} of {every} cells, in {store.minutes():.0f} minutes. `make bench-peers` "
        "goes on with the others, if there are any.",
        "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(pages) + "\n```",
        "## Claims",
        table(["claim", "measured"], verdicts) if verdicts else "Nothing has been measured yet.",
        *memory_table(store),
        f"## Lost cells ({len(lost)})",
        "Every cell in which a peer was faster by more than a tie. The reasons are kept by hand in `lost.md` beside "
        "this page, one line `- data/loss/regularizer/lam/accuracy: why` for each cell or, with `*`, for many.",
        table(head, rows) if rows else "None.",
    ]
    return "\n\n".join(text) + "\n"
