"""The papers' comparisons run at tiny sizes on generated data: every page, figure and claim is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAGES = {
    "s08": ("figure2", "figure3"),
    "t07": ("figure3", "figure4", "figure5", "figure7"),
    "t07_parallel": ("figure6",),
    "d09": ("figure1",),
    "d09_structured": ("figure3",),
    "m09": ("time",),
    "y10": ("figure15", "figure16", "figure17", "figure18"),
    "y10_classes": ("figure19", "figure20", "figure21", "figure22"),
}


@pytest.fixture
def papers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("matplotlib", reason="the figures need matplotlib")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("papers.__main__")


def test_pages_and_figures(papers: ModuleType, tmp_path: Path) -> None:
    papers.main(["--quick", "--generated", "--output", str(tmp_path)])
    for name, figures in PAGES.items():
        text = (tmp_path / f"{name}.md").read_text()
        assert "A quick run" in text
        assert "generated stand-in" in text
        assert re.search(r"\| (yes|\*\*no\*\*|cannot be said) \|", text)
        for figure in figures:
            file = tmp_path / f"{name}-{figure}.png"
            assert file.name in text
            assert 5_000 < file.stat().st_size < 150_000
    index = (tmp_path / "index.md").read_text()
    assert all(f"[{name}]({name}.md)" in index for name in PAGES)


def test_published_figures_are_compared_on_published_data_only(
    papers: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    papers.main(["--quick", "--generated", "--only", "d09", "--output", str(tmp_path)])
    assert capsys.readouterr().out.count("not the published data") == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["d09-figure1.png", "d09.md"]  # and no index of one
