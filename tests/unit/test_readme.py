"""The README's Python runs as it stands, and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


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
