"""Everything `make bench` prints: passes, parsing, bundle methods, memory, small problems, import time."""

import os
import platform
import subprocess
import sys
import time

import bundle
import memory
import numpy
import parse
import passes
import scipy
import sklearn
import small

import bmrm


def import_seconds(module):
    """Best of five imports in fresh processes."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    print(f"# bmrm {bmrm.__version__}: figures\n")
    print(
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, numpy {numpy.__version__}, "
    )
    print(f"scipy {scipy.__version__}, scikit-learn {sklearn.__version__}\n")
    for title, part in (
        ("A pass over the data", passes.main),
        ("Parsing svmlight text", parse.main),
        ("Bundle methods", bundle.main),
        ("Peak memory of a fit", memory.main),
        ("Small problems, and what comes before a solver", small.main),
    ):
        print(f"\n## {title}\n", flush=True)
        part()
    print("\n## Import\n")
    print(f"import bmrm takes {import_seconds('bmrm') - import_seconds('numpy'):.3f} s more than import numpy")


if __name__ == "__main__":
    main()
