"""Write the papers' comparisons as pages of the manual: `make papers`."""

import argparse
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from papers import d09, d09_structured, m09, s08, t07, t07_parallel, y10, y10_classes
from papers.data import Shelf, default_folder
from papers.page import environment

MODULES = {
    "s08": s08,
    "t07": t07,
    "t07_parallel": t07_parallel,
    "d09": d09,
    "d09_structured": d09_structured,
    "m09": m09,
    "y10": y10,
    "y10_classes": y10_classes,
}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m papers", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[2] / "docs" / "papers")
    parser.add_argument("--only", choices=MODULES, nargs="+", default=list(MODULES), help="these papers only")
    parser.add_argument("--generated", action="store_true", help="no files, generated data only")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to test the machinery")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Make the pages and an index of all claims."""
    options = parse(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    shelf = Shelf(None if options.generated else default_folder(), options.quick)
    pages = []
    for name in options.only:
        began = time.perf_counter()
        with threadpool_limits(1):
            pages.append(MODULES[name].make(shelf))
        pages[-1].write(options.output, note(options, name))
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    if len(pages) == len(MODULES):
        write_index(options, pages)


def note(options, name):
    flags = "".join(f"--{flag} " for flag in ("generated", "quick") if getattr(options, flag))
    warning = "**A quick run with tiny sizes: its figures mean nothing.** " if options.quick else ""
    command = f'make papers ARGS="{flags}--only {name}"'
    return f"{warning}Made by `{command}` on {environment()}."


def write_index(options, pages):
    lines = ["# The papers' comparisons", ""]
    lines += [
        "The figures of the five papers this library is built on, redrawn from its own solvers. `make papers` writes",
        "these pages anew; `BMRM_DATA` names the folder with the data, and sets that are not there are generated.",
        "The papers' machines and rivals are not at hand: shapes and orders are compared; only objectives as numbers.",
        "",
        "```{toctree}",
        ":maxdepth: 1",
        "",
        *(page.name for page in pages),
        "```",
        "",
        "| | the paper | here | agrees |",
        "|---|---|---|---|",
    ]
    for page in pages:
        lines += [f"| [{page.name}]({page.name}.md) | {' | '.join(claim)} |" for claim in page.claims]
    lines += ["", environment() + ".", ""]
    (options.output / "index.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
