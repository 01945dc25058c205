"""The Python of the README and of the tutorials runs as it stands, and prints what it says."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
TUTORIALS = [page for page in README.parent.glob("docs/*.md") if ">>> " in page.read_text()]


def test_python_examples():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in blocks:
            exec(block, names)
    promised = re.search(r"# (objective \S+), at most", blocks[0])
    assert promised is not None
    assert promised.group(1) in printed.getvalue()
    assert "CONVERGED" in printed.getvalue()


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_tutorials(page):
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


def test_there_are_tutorials():
    assert "sequences.md" in [page.name for page in TUTORIALS]


def test_a_model_of_one_s_own(capsys):
    page = (README.parent / "docs/structured.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(block, {"__name__": "example"})
    assert capsys.readouterr().out == "True -0.0125\n"
