"""`python -m bmrm.testing`: a hunt from the command line, with exit code 1 if anything was found."""

from __future__ import annotations

import argparse
import sys

from bmrm.testing import hunt


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bmrm.testing", description="Hunt for claims that are not true.")
    parser.add_argument("--minutes", type=float, default=30.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0, help="of the problems")
    parser.add_argument("--processes", type=int, default=2, help="problems at a time")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--problems", type=int, default=None, help="how many problems at most")
    report = hunt(**vars(parser.parse_args()))
    sys.stdout.write(f"{report}\n")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
