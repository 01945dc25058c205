"""Sphinx configuration."""

from pathlib import Path

import numpy as np

import bmrm
from bmrm.problem import missing

project = "bmrm"
author = "the bmrm developers"
release = bmrm.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "benchmarks/lost.md"]  # the latter is merged into the summary
html_theme = "pydata_sphinx_theme"
html_title = "bmrm"
autosummary_generate = True
numpydoc_show_class_members = False
suppress_warnings = ["myst.xref_missing", "ref.ref"]


def fitting(loss, regularizer):
    """Names of the solvers that take this pair, or the reason why there is none."""
    rng = np.random.default_rng(0)
    y, groups = loss.draw(rng, 8)
    risk = bmrm.LinearRisk(rng.normal(size=(8, 3)), y, loss, groups=groups)
    try:
        problem = bmrm.Problem(risk, regularizer, 0.1)
    except ValueError:
        return "refused: no minimum"
    return ", ".join(f"`{name}`" for name, solver in bmrm.solvers.SOLVERS.items() if not missing(solver, problem))


def write_compatibility(path):
    """Write which solvers serve which loss and regularizer, from the same traits that decide it at run time."""
    rows = ["# What fits together", "", "| loss | regularizer | solvers |", "|---|---|---|"]
    for name, loss in bmrm.losses.LOSSES.items():
        for kind, regularizer in bmrm.regularizers.REGULARIZERS.items():
            for label, bounds in (("", None), (" with bounds", (-1.0, 1.0))):
                rows.append(f"| `{name}` | `{kind}`{label} | {fitting(loss(), regularizer(bounds=bounds))} |")
    path.write_text("\n".join(rows) + "\n")


write_compatibility(Path(__file__).parent / "compatibility.md")


def escape_bars(app, what, name, obj, options, lines):
    """Absolute values and norms are written |a| in docstrings: outside of code these are no substitutions."""
    code = None  # indentation of the paragraph that announced a literal block
    for k, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if code is not None and line.strip() and indent <= code:
            code = None
        if code is None and "`" not in line and not line.lstrip().startswith((">>>", "...")):
            lines[k] = line.replace("|", "\\|")
        if line.rstrip().endswith("::"):
            code = indent


def setup(app):
    """Connect the hook; after numpydoc, which comes with priority 500."""
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
