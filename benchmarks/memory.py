"""Peak memory of a fit on more than 1 GB of data, each in a process of its own, as a Markdown table.

The bound: 1.2 times the data, plus 12 vectors of length m and d, plus the bundle's byte budget, over the memory that
the imports take.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROWS = {"CSR f64": 1_100_000, "CSR f32": 1_650_000, "dense f64": 2_600_000, "dense f32": 5_200_000}


def write_parts(folder, kind):
    """Write the arrays of a data set; returns their size in bytes."""
    rng, m = np.random.default_rng(0), ROWS[kind]
    dtype = np.float64 if kind.endswith("64") else np.float32
    if kind.startswith("CSR"):
        d, k = 50_000, 80
        columns = np.sort(
            rng.integers(0, d // k, size=(m, k), dtype=np.int32) + np.arange(k, dtype=np.int32) * (d // k)
        )
        parts = {
            "indices": columns.ravel(),
            "values": rng.random(m * k, dtype=np.float32).astype(dtype),
            "indptr": np.arange(0, m * k + 1, k, dtype=np.int32),
            "shape": np.array([m, d]),
        }
    else:
        parts = {"X": rng.random((m, 54), dtype=np.float32).astype(dtype)}
    parts["y"] = np.where(rng.random(m) < 0.5, -1.0, 1.0)
    for name, array in parts.items():
        np.save(folder / f"{name}.npy", array)
    return sum(array.nbytes for name, array in parts.items() if name != "y")


def peak_bytes():
    """The high-water mark of this process; getrusage's would include the parent's before the call of exec."""
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in status if line.startswith("VmHWM")).split()[1])


def fit(folder):
    """Load, fit and print the peaks: what the process at the other end does."""
    import scipy.sparse as sp

    import bmrm

    classifier = bmrm.LinearClassifier(loss="hinge", lam=1e-4, tol=1e-2, max_iter=20, n_threads=2)
    base = peak_bytes()
    parts = {path.stem: np.load(path) for path in Path(folder).glob("*.npy")}
    if "X" in parts:
        X = parts["X"]
    else:
        X = sp.csr_array((parts["values"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
    import warnings

    warnings.simplefilter("ignore")  # not converged after 20 iterations: only the memory is of interest
    classifier.fit(X, parts["y"])
    print(
        json.dumps({"used": peak_bytes() - base, "m": X.shape[0], "d": X.shape[1], "n_iter": int(classifier.n_iter_)})
    )


def main():
    from bmrm.bundle.storage import cuts_within_budget

    print("| data | GB | peak GB | bound GB | peak / data | met |\n|---|--:|--:|--:|--:|---|")
    for kind in ROWS:
        with tempfile.TemporaryDirectory() as name:
            data = write_parts(Path(name), kind)
            answer = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True).stdout
        seen = json.loads(answer.splitlines()[-1])
        bundle = 8 * seen["d"] * min(cuts_within_budget(seen["d"]), 2 * seen["n_iter"] + 2)
        bound = 1.2 * data + 12 * 8 * (seen["m"] + seen["d"]) + bundle
        print(
            f"| {kind} | {data / 1e9:.2f} | {seen['used'] / 1e9:.2f} | {bound / 1e9:.2f} "
            f"| {seen['used'] / data:.2f} | {'yes' if seen['used'] < bound else 'no'} |"
        )


if __name__ == "__main__":
    fit(sys.argv[1]) if len(sys.argv) > 1 else main()
