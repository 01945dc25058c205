"""Sequence labeling against CRFsuite: `python benchmarks/crf.py`, data from the folder BMRM_DATA names.

Both libraries get the same attributes, only weights of attribute-label pairs and of transitions seen in training, no
weights for start and end, and the same penalty c2 |w|^2, that is lam = 2 c2 / m. CRFsuite trains by its L-BFGS until
its own criterion stops it. Ours is measured when its objective is at most CRFsuite's last one, and when its gap is
proved to be 1e-4. Each run has a process of its own. `--memory` trains on CoNLL-2000 with more than a million weights
and prints the peak of the process.
"""

import argparse
import json
import multiprocessing
import os
import platform
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import crf_data
import numpy as np
from scipy import sparse

import bmrm

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "sequences.md"
ROWS = ROOT / "build" / "sequences.json"  # of the table: what is there is not measured again
C2, GAP = 1.0, 1e-4
MARGIN_GAPS = {"OCR letters": (1e-2, 1e-3), "CoNLL-2000": (1e-2,)}
CONTEXT = multiprocessing.get_context("fork")


def in_process(function, *arguments):
    """Return what the function returns in a child."""
    with CONTEXT.Pool(1) as pool:
        return pool.apply(function, arguments)


class Clock:
    """Wall and processor seconds since its making."""

    def __init__(self):
        self.wall, self.processor = time.perf_counter(), time.process_time()

    def read(self):
        return [time.perf_counter() - self.wall, time.process_time() - self.processor]


def crfsuite(task):
    """Return the row of CRFsuite: its training alone, without reading the examples and generating features."""
    import pycrfsuite

    strings, _, y = task.train
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c1": 0.0, "c2": C2})
    for sequence, labels in zip(strings, y):
        trainer.append(pycrfsuite.ItemSequence(sequence), [task.labels[c] for c in labels])
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock()
        trainer.train(f"{folder}/model")
        wall, processor = clock.read()
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        ids = {name: c for c, name in enumerate(task.labels)}
        predicted = [np.array([ids[c] for c in tagger.tag(sequence)]) for sequence in task.test[0]]
    iterations = trainer.logparser.iterations
    # its log counts processor seconds of the iterations alone; the rest of the call is theirs on the same clock
    share = sum(each["time"] for each in iterations) / processor
    return {
        "solver": "CRFsuite, L-BFGS", "threads": 1, "seconds": share * wall, "processor": share * processor,
        "steps": len(iterations), "objective": iterations[-1]["loss"] / len(strings), "gap": None,
        **scored(task, predicted),
    }  # fmt: skip


def scored(task, predicted):
    accuracy, f1 = crf_data.score(task, predicted, task.test[2])
    return {"accuracy": accuracy, "f1": f1}


def ours(task, kind, n_threads, target, gap):
    """Return the row of our solver, stopped by its objective or by its gap."""
    _, X, y = task.train
    clock = Clock()
    model = bmrm.ChainModel.seen(X, y, len(task.labels), start_end=False)
    loss = bmrm.losses.StructuredLog(model) if kind == "CRF" else bmrm.losses.StructuredHinge(model)
    risk = bmrm.StructuredRisk(X, y, loss, n_threads=n_threads)
    prepared = clock.read()[0]
    clock = Clock()
    result = bmrm.solve(
        bmrm.Problem(risk, "l2", 2.0 * C2 / len(X)),
        tol=gap,
        monitor=None if target is None else lambda record: record.upper <= target,
    )
    wall, processor = clock.read()
    certificate = result.certificate
    to = "to CRFsuite's objective" if target is not None else f"to a gap of {gap:g}"
    return {
        "solver": f"{kind}, {to}", "threads": n_threads, "seconds": wall, "processor": processor,
        "steps": result.iterations, "objective": certificate.upper,
        "gap": (certificate.upper - certificate.lower) / certificate.upper, "prepared": prepared, "dim": model.dim,
        **scored(task, model.decode(model.encode(task.test[1]), result.w, n_threads)),
    }  # fmt: skip


def rows_of(task, rows):
    """Measure what is not in the rows yet."""

    def measured(name, function, *arguments):
        if name not in rows:
            rows[name] = in_process(function, task, *arguments)
            print(task.name, rows[name], flush=True)
            save(task.name, {"about": about(task), "rows": rows})
        return rows[name]

    theirs = measured("crfsuite", crfsuite)
    for n_threads in (1, 2):
        measured(f"CRF to objective {n_threads}", ours, "CRF", n_threads, theirs["objective"], 1e-9)
    for n_threads in (1, 2):
        measured(f"CRF to gap {n_threads}", ours, "CRF", n_threads, None, GAP)
    for gap in MARGIN_GAPS[task.name]:
        measured(f"margin {gap}", ours, "max-margin", 2, None, gap)


def stored():
    return json.loads(ROWS.read_text()) if ROWS.exists() else {}


def save(name, told):
    ROWS.parent.mkdir(exist_ok=True)
    ROWS.write_text(json.dumps(stored() | {name: told}, indent=1))


def table(rows):
    heads = ["solver", "threads", "seconds", "of CRFsuite's", "processor seconds", "of CRFsuite's", "steps"]
    heads += ["objective", "proved gap", "accuracy", "F1"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    theirs = rows["crfsuite"]["processor"]  # what its seconds are on a machine without other work
    for row in rows.values():
        cells = [
            row["solver"], row["threads"], f"{row['seconds']:.1f}",
            f"{row['seconds'] / theirs:.2f}", f"{row['processor']:.1f}",
            f"{row['processor'] / theirs:.2f}", row["steps"], f"{row['objective']:.6g}",
            "none" if row["gap"] is None else f"{row['gap']:.1e}", f"{row['accuracy']:.4f}",
            "" if row["f1"] is None else f"{row['f1']:.4f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def about(task):
    _, X, _ = task.train
    return {
        "template": task.template, "train": len(X), "tokens": int(X.offsets[-1]), "test": len(task.test[1]),
        "attributes": task.n_attributes, "labels": len(task.labels),
    }  # fmt: skip


def page(found):
    """Write the page from all rows."""
    words = (Path(__file__).parent / "crf_words.md").read_text()
    parts = [words.format(cores=os.cpu_count(), machine=processor_name(), versions=versions(), c2=C2)]
    for name, rows in found.items():
        if name == "memory":
            continue
        told = rows["about"]
        dim = next(row["dim"] for row in rows["rows"].values() if "dim" in row)
        parts.append(
            f"## {name}\n\n{told['train']} sequences with {told['tokens']} tokens for training, {told['test']} for the "
            f"test; {told['labels']} labels; {told['template']}: {told['attributes']} attributes, {dim} weights.\n\n"
            + table(rows["rows"])
        )
    if "memory" in found:
        told = found["memory"]
        parts.append(
            f"## Memory\n\nCoNLL-2000 with a wider template, {told['dim']} weights, 2 threads, to a gap of {GAP:g}: "
            f"the process has {told['before']:.0f} MB with the data read, and {told['peak']:.0f} MB at its peak."
        )
    PAGE.write_text("\n\n".join(parts) + "\n")


def processor_name():
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().split("\n") if line.startswith("model name")]
    return names[0] if names else platform.processor()


def versions():
    names = ("bmrm", "python-crfsuite", "numpy", "scipy")
    return ", ".join(f"{name} {version(name)}" for name in names) + f", Python {platform.python_version()}"


def peak_of_process():
    """Return the most memory this process had, in MB: `getrusage` would count its parent's as well."""
    lines = Path("/proc/self/status").read_text().split("\n")
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def trained_on_many(path):
    """Train in a process that has seen no strings; return its size before and at its peak, in MB."""
    kept = np.load(path)
    tokens = sparse.csr_array((np.ones(kept["indices"].size), kept["indices"], kept["indptr"]), shape=kept["shape"])
    X, y = bmrm.Sequences(tokens, kept["offsets"]), kept["y"]
    before = peak_of_process()
    model = bmrm.ChainModel.seen(X, y, int(y.max()) + 1)
    risk = bmrm.StructuredRisk(X, y, bmrm.losses.StructuredLog(model), n_threads=2)
    result = bmrm.solve(bmrm.Problem(risk, "l2", 2.0 * C2 / len(X)), tol=GAP)
    assert result.converged
    return {"dim": model.dim, "before": before, "peak": peak_of_process()}


def memory():
    """Return the peak of a training with more than a million weights."""
    crf_data.BIGRAMS, crf_data.WORD_TRIGRAMS = (-2, -1, 0, 1), (-2, -1, 0)
    task = crf_data.conll()
    _, X, y = task.train
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/tokens.npz"
        arrays = {"indices": X.tokens.indices, "indptr": X.tokens.indptr, "shape": X.tokens.shape}
        np.savez(path, **arrays, offsets=X.offsets, y=np.concatenate(y))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(trained_on_many, (path,))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("conll", "ocr"), help="one of the sets")
    parser.add_argument("--memory", action="store_true", help="measure the memory of a large training instead")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    options = parser.parse_args()
    try:
        version("python-crfsuite")
    except PackageNotFoundError:
        parser.exit(0, "skipped: python-crfsuite is not installed (pip install python-crfsuite)\n")
    missing = [name for name in ("conll2000", "ocr_letters") if not (crf_data.DATA / name).exists()]
    if missing:
        parser.exit(0, f"skipped: {crf_data.DATA} has no {' and no '.join(missing)}; BMRM_DATA names the folder\n")
    if options.again and ROWS.exists():
        ROWS.write_text(json.dumps({name: told for name, told in stored().items() if name == "memory"}))
    if options.memory:
        found = memory()
        print(found)
        save("memory", found)
    for name, load in (("conll", crf_data.conll), ("ocr", crf_data.ocr)):
        if options.memory or options.only not in (None, name):
            continue
        task = load()
        rows = stored().get(task.name, {}).get("rows", {})
        rows_of(task, rows)
        print(table(rows))
    if all(name in stored() for name in ("CoNLL-2000", "OCR letters")):
        page(stored())


if __name__ == "__main__":
    main()
