"""Files that are complete or not there: permissions, leftovers of killed writers, full disks."""

import errno
import os
import signal
import stat
import subprocess
import sys

import pytest

import bmrm
from bmrm._errors import DataError
from bmrm.data.atomic import atomic, remove_leftovers

_WRITER = """
import sys, time
from bmrm.data.atomic import atomic
with atomic("store") as file:
    file.write(b"x" * 100000)
    file.flush()
    print("open", flush=True)
    time.sleep(60)
"""


def _leftovers(folder):
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


@pytest.fixture
def writer(tmp_path):
    """Another process in the middle of writing 'store'."""
    process = subprocess.Popen([sys.executable, "-c", _WRITER], cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"open\n"
    yield process
    process.kill()
    process.communicate()


def test_the_mask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask is that of all threads"))
    with atomic(tmp_path / "new") as file:
        file.write(b"1")
    assert (tmp_path / "new").read_bytes() == b"1"


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    with atomic(tmp_path / "new"):
        pass
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_private_file_stays_private_while_it_is_replaced(tmp_path):
    target = tmp_path / "private"
    target.write_bytes(b"old")
    target.chmod(0o600)
    with atomic(target):
        (name,) = _leftovers(tmp_path)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_writer_at_work_keeps_its_file(writer, tmp_path):
    remove_leftovers(tmp_path / "store")
    assert len(_leftovers(tmp_path)) == 1


def test_what_a_killed_convert_left_is_removed_by_the_next(writer, tmp_path):
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    assert len(_leftovers(tmp_path)) == 1
    (tmp_path / "rows.svm").write_text("1 1:2\n-1 2:3\n")
    bmrm.convert(tmp_path / "rows.svm", tmp_path / "store")
    assert _leftovers(tmp_path) == []


def test_a_full_disk_is_said_with_the_name_of_the_file(tmp_path):
    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DataError, match=r"model\.bmrm: cannot be written \(No space left on device\)"):  # noqa: SIM117
        with atomic(tmp_path / "model.bmrm"):
            full()
    assert os.listdir(tmp_path) == []


def test_other_errors_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError), atomic(tmp_path / "model.bmrm"):
        (tmp_path / "not there").read_bytes()
    assert os.listdir(tmp_path) == []
