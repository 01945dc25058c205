"""How objects of data classes are stored: by their parameters."""

from __future__ import annotations

import dataclasses
from typing import Any


class ByFields:
    """A data class whose objects are copied and stored by their parameters; what follows from them is found anew.

    Examples
    --------
    >>> import pickle
    >>> from bmrm.regularizers import L2
    >>> one = L2(weights=[1.0, 0.0])
    >>> sorted(one.__getstate__()), pickle.loads(pickle.dumps(one)).traits == one.traits
    (['bounds', 'weights'], True)
    """

    def __getstate__(self) -> dict[str, Any]:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in fields if field.init}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
