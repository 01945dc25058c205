"""All targets by name."""

from __future__ import annotations

from fuzz.target import Target
from fuzz.targets.calls import Public
from fuzz.targets.files import Archive, Checkpoints, Models, Stores
from fuzz.targets.kernels import Kernels
from fuzz.targets.texts import Attributes, Columns, Svmlight, Templates
from fuzz.targets.wires import Messages, Owners

TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (
        *(Svmlight, Attributes, Columns, Templates, Archive, Models, Stores, Checkpoints, Owners, Messages, Kernels),
        Public,
    )
}
