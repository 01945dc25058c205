"""Sphinx configuration."""

import bmrm

project = "bmrm"
author = "the bmrm developers"
release = bmrm.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "bmrm"
autosummary_generate = True
numpydoc_show_class_members = False
suppress_warnings = ["myst.xref_missing"]
