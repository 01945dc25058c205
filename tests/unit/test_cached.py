"""Cached properties: computed once, and no lock that a forked process would inherit."""

import os
import threading

import pytest

from bmrm._cached import cached_property


class Slow:
    """An object whose property another thread computes until it is let go."""

    def __init__(self):
        self.begun, self.go = threading.Event(), threading.Event()

    @cached_property
    def size(self):
        """The size."""
        self.begun.set()
        assert self.go.wait(30.0)
        return 3


def test_a_value_is_computed_once_and_stays():
    data = Slow()
    data.go.set()
    assert data.size == 3
    data.go.clear()
    assert data.size == 3
    assert data.__dict__["size"] == 3
    assert Slow.size.__doc__ == "The size."


def test_another_object_does_not_wait():
    first, second = Slow(), Slow()
    thread = threading.Thread(target=lambda: first.size)
    thread.start()
    assert first.begun.wait(30.0)
    second.go.set()
    done = threading.Thread(target=lambda: second.size, daemon=True)
    done.start()
    done.join(10.0)
    assert not done.is_alive()
    first.go.set()
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_during_the_computation_computes_its_own():
    first, second = Slow(), Slow()
    second.go.set()
    thread = threading.Thread(target=lambda: first.size)
    thread.start()
    assert first.begun.wait(30.0)
    child = os.fork()
    if child == 0:
        threading.Timer(10.0, os._exit, [1]).start()
        os._exit(0 if second.size == 3 else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    first.go.set()
    thread.join()


def test_the_package_uses_no_other_kind():
    from pathlib import Path

    import bmrm

    sources = Path(bmrm.__file__).parent.rglob("*.py")
    assert not [p.name for p in sources if "from functools import cached_property" in p.read_text()]
