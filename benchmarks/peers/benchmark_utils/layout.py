"""The base classes of benchopt, or bare ones of the same shape where it is not installed.

The files of this benchmark follow benchopt's layout and can be run with it. The runner here needs nothing of it:
it measures otherwise (interleaved, with a cap for each fit), and benchopt brings many packages along.
"""

import itertools

try:
    from benchopt import BaseDataset, BaseObjective, BaseSolver
except ImportError:

    class Part:
        """One part of a benchmark: its parameters are a product of lists."""

        parameters = {}

    class BaseDataset(Part):
        """Stands for benchopt's class of that name."""

    class BaseObjective(Part):
        """Stands for benchopt's class of that name."""

    class BaseSolver(Part):
        """Stands for benchopt's class of that name."""


__all__ = ["BaseDataset", "BaseObjective", "BaseSolver", "make", "variants"]


def make(cls, **parameters):
    """An instance with these parameters; the first of each list for the rest."""
    part = cls()
    for key, values in cls.parameters.items():
        setattr(part, key, parameters.pop(key, values[0]))
    if parameters:
        raise ValueError(f"{cls.__module__} has no parameters {sorted(parameters)}")
    return part


def variants(cls):
    """One instance for each combination of parameters."""
    return [make(cls, **dict(zip(cls.parameters, values))) for values in itertools.product(*cls.parameters.values())]
