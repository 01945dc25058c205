"""A picture of how upper and lower bounds meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bmrm.data.atomic import atomic
from bmrm.driver import Record

_UPPER, _LOWER, _GAP = "#c2410c", "#1d4ed8", "#334155"
_OTHER = "#15803d"
_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.edgecolor": "#64748b",
    "xtick.color": "#475569",
    "ytick.color": "#475569",
    "axes.grid": True,
    "grid.color": "#e2e8f0",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Course:
    """One column of the picture: a run, and where another program stopped."""

    title: str
    history: Sequence[Record]
    level: tuple[str, float] | None = None


def convergence_plot(path: Path, runs: Sequence[Course]) -> None:
    """Draw for each run both bounds above and the relative gap below; the file is complete or not there."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(5.2 * len(runs), 6.2), layout="constrained", dpi=150)
        FigureCanvasAgg(figure)
        axes = figure.subplots(2, len(runs), squeeze=False, sharex="col", height_ratios=(3, 2))
        for (top, bottom), run in zip(axes.T, runs):
            _draw_bounds(top, run)
            _draw_gap(bottom, run.history)
        axes[0, 0].set_ylabel("objective")
        axes[1, 0].set_ylabel("relative gap")
        with atomic(path) as file:
            figure.savefig(file, format="png")


def _draw_bounds(axis: Any, run: Course) -> None:
    iterations, upper, lower = _columns(run.history)
    axis.fill_between(iterations, lower, upper, color="#94a3b8", alpha=0.25, linewidth=0)
    axis.plot(iterations, upper, color=_UPPER, linewidth=1.8, label="objective reached")
    axis.plot(iterations, lower, color=_LOWER, linewidth=1.8, label="proven lower bound")
    top = float(upper[-1])
    if run.level is not None:
        name, value = run.level
        axis.axhline(value, color=_OTHER, linewidth=1.4, linestyle=(0, (5, 3)), label=name)
        top = max(top, value)
    axis.set_ylim(0.0, 1.6 * top)
    axis.set_title(run.title, loc="left", fontweight="bold", pad=10)
    axis.legend(loc="upper right")


def _draw_gap(axis: Any, history: Sequence[Record]) -> None:
    iterations, upper, lower = _columns(history)
    relative = np.maximum((upper - lower) / np.abs(upper), np.finfo(np.float64).eps)
    axis.semilogy(iterations, relative, color=_GAP, linewidth=1.8)
    axis.plot(iterations[-1:], relative[-1:], "o", color=_GAP, markersize=5)
    axis.minorticks_off()
    axis.set_ylim(top=3.0)
    text = f"{100.0 * relative[-1]:.1g}% after {history[-1].seconds:.2g} s"
    axis.text(0.98, 0.94, text, transform=axis.transAxes, ha="right", va="top", color=_GAP)
    axis.set_xlabel("iteration")


def _columns(history: Sequence[Record]) -> tuple[Any, Any, Any]:
    rows = np.array([(record.iteration, record.upper, record.lower) for record in history])
    return rows[:, 0], rows[:, 1], rows[:, 2]
