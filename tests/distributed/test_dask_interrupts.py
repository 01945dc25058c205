"""Commands on Dask workers that are stopped by a signal: the best model is written, and a checkpoint."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from clusters import SILENT

import bmrm


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_a_command_is_stopped(sent, rng, tmp_path):
    """Ctrl-C goes to all processes of the terminal; the workers leave it to the one that needs them."""
    X = rng.normal(size=(400, 6))
    for k in range(2):
        bmrm.write(tmp_path / f"part-{k}.svm", X[k::2], np.sign(X[k::2, 0] + rng.normal(size=200)))
    command = [sys.executable, "-m", "bmrm", "train", "part-0.svm", "part-1.svm", "--engine", "dask", "--workers", "2"]
    options = [
        "--solver",
        "subgradient",
        "--tol",
        "1e-15",
        "--model",
        "m.bmrm",
        "--checkpoint",
        "run",
        "--checkpoint-seconds",
        "0",
    ]
    process = subprocess.Popen([*command, *options], cwd=tmp_path, start_new_session=True, **SILENT)
    try:
        deadline = time.monotonic() + 90.0
        while not (tmp_path / "run").exists() and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, sent) if sent is signal.SIGINT else process.send_signal(sent)
        assert process.wait(timeout=60) == 3
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.bmrm", "part-0.svm", "part-1.svm", "run"]
    assert np.isfinite(bmrm.load(tmp_path / "m.bmrm").certificate.gap)
