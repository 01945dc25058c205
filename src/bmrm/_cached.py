"""Properties that are computed once for each object, without a lock.

The class of `functools` in Python 3.11 holds a lock of the class during the computation. A process forked while another
thread computes inherits that lock and waits for ever (3 of 48 children).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """Compute the property on first use and keep it in the object's dictionary.

    Two threads may compute it at the same time; both get the value that was stored first.

    Examples
    --------
    >>> from bmrm._cached import cached_property
    >>> class Data:
    ...     @cached_property
    ...     def size(self):
    ...         print("computed")
    ...         return 3
    >>> data = Data()
    >>> data.size + data.size
    computed
    6
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> cached_property[T] | T:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self.name, self.compute(instance))
        return value
