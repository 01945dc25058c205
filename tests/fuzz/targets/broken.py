"""A target that is wrong on purpose: it shows what a campaign does."""

from __future__ import annotations

import os
import random

import numpy as np

from fuzz.target import Target


class Broken(Target):
    """Dies of one input, asks for too much with another, and fails with a third."""

    name = "broken"

    def seeds(self) -> list[bytes]:
        """Return one input for each way to go."""
        return [b"die", b"memory", b"error", b"refuse", b"fine"]

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """There is no other input."""
        raise StopIteration

    def run(self, data: bytes) -> None:
        """Do what the input says."""
        if data == b"die":
            os.abort()
        if data == b"memory":
            np.ones(1 << 34)
        if data == b"error":
            raise KeyError("untyped")
        if data == b"refuse":
            raise ValueError("typed")
