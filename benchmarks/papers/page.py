"""A page of the manual: text, tables, figures, and what the paper says next to what was measured."""

import os
import platform

import matplotlib
import numpy as np
import scipy
from matplotlib.ticker import FuncFormatter, NullLocator

import bmrm

matplotlib.use("Agg")
import matplotlib.pyplot as plt

STYLES = {
    "bmrm": ("tab:blue", "--"),
    "bmrm_line": ("tab:cyan", "-."),
    "ls_bmrm": ("tab:green", ":"),
    "auto": ("black", "-"),
    "pegasos": ("tab:orange", "-"),
    "pegasos, all rows": ("tab:red", ":"),
    "adaptive_online": ("tab:purple", "--"),
    "proximal_online": ("tab:red", "-"),
    "subgradient_lbfgs": ("tab:red", "-"),
    "owlqn": ("tab:orange", "--"),
    "owlqn_star": ("tab:purple", "-"),
    "proximal_bundle": ("tab:red", "-"),
    "proximal_bundle, no line search": ("tab:orange", "-."),
}


class Page:
    """Collects the parts of a page, and writes it as Markdown with its figures beside it."""

    def __init__(self, name, title, paper):
        self.name, self.title, self.paper = name, title, paper
        self.parts, self.figures, self.claims = [], {}, []

    def section(self, title):
        self.parts.append(f"## {title}")

    def text(self, *sentences):
        self.parts.append(" ".join(sentences))

    def data(self, sets):
        """Say which data was used."""
        self.parts.append("Data:\n\n" + "\n".join(f"- {data.name}: {data.origin}; {shape(data)}" for data in sets))

    def table(self, head, rows):
        lines = ["| " + " | ".join(map(str, line)) + " |" for line in [head, *rows]]
        lines.insert(1, "|---" + "|--:" * (len(head) - 1) + "|")
        self.parts.append("\n".join(lines))

    def figure(self, figure, name, caption):
        """Take a figure; every axis that has several named lines gets a legend."""
        for axis in figure.axes:
            if axis.get_legend_handles_labels()[1]:
                axis.legend(fontsize=7)
            axis.grid(alpha=0.3)
        file = f"{self.name}-{name}.png"
        self.figures[file] = figure
        self.parts.append(f"![{caption}]({file})\n\n*{caption}*")

    def claim(self, paper, ours, agrees):
        """What the paper says, what was measured here, and whether the two agree (None: cannot be said)."""
        self.claims.append((paper, ours, {True: "yes", False: "**no**", None: "cannot be said"}[agrees]))

    def write(self, folder, note):
        """Write the page; note says how it was made."""
        for file, figure in self.figures.items():
            figure.savefig(folder / file, dpi=80, metadata={"Software": None})
            plt.close(figure)
        claims = [("the paper", "here", "agrees"), ("---", "---", "---"), *self.claims]
        verdicts = "\n".join(f"| {' | '.join(claim)} |" for claim in claims)
        parts = [f"# {self.title}", self.paper, note, verdicts, *self.parts]
        (folder / f"{self.name}.md").write_text("\n\n".join(parts) + "\n")


def panels(columns, rows=1):
    """A figure with so many panels; all of them in one list."""
    width, height = 3.7 * columns, 3.0 * rows
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
    # Margins in inches: the layout engines of matplotlib measure every text several times, and take seconds.
    edges = {"left": 0.62 / width, "right": 1.0 - 0.1 / width, "bottom": 0.48 / height, "top": 1.0 - 0.27 / height}
    figure.subplots_adjust(**edges, wspace=0.28, hspace=0.35)
    return figure, list(axes.ravel())


def label(axis, title, x, y, scale="linear-linear"):
    """Name a panel and its axes; scale is that of x and y."""
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(x, fontsize=8)
    axis.set_ylabel(y, fontsize=8)
    axis.tick_params(labelsize=7)
    drawn = np.concatenate([np.empty((0, 2)), *(line.get_xydata() for line in axis.get_lines())])
    for set_scale, kind, values in zip((axis.set_xscale, axis.set_yscale), scale.split("-"), drawn.T):
        set_scale(kind if np.any(np.isfinite(values) & (values > 0.0)) else "linear")
    for line in (axis.xaxis, axis.yaxis):
        line.set_minor_locator(NullLocator())
        line.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))


def style(solver):
    """Color and dashes of a solver, the same in every figure."""
    color, dashes = STYLES[solver]
    return {"color": color, "linestyle": dashes, "linewidth": 1.3}


def number(value, digits=3):
    """A number for a table; a dash for one that was not reached."""
    return "–" if value is None or not np.isfinite(value) else f"{value:.{digits}g}"


def shape(data):
    """Size of the training part in words."""
    m, d = data.X.shape
    return f"{m:,} x {d:,}"


def environment():
    """What the figures were measured on."""
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), each run on one thread; Python {platform.python_version()}, "
        f"bmrm {bmrm.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"matplotlib {matplotlib.__version__}"
    )
