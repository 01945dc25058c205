"""The benchmark against other packages: `make bench-peers`, or `python benchmarks/peers/run.py --help`."""

import os
import signal
import sys

THREADS = "2"
VARIABLES = "OMP OPENBLAS MKL NUMBA VECLIB NUMEXPR BLIS"


def main(arguments=None):
    """Set the number of threads before any library is loaded, then run."""
    os.environ.update({f"{name}_NUM_THREADS": THREADS for name in VARIABLES.split()})
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the processes of the peers end as well
    from runner.cli import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
