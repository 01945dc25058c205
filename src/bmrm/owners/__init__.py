"""Several owners: rows stay with those they belong to; values and subgradients of sums over them travel.

An `Owner` has data and answers evaluations, watched by its guard; a `ShardServer` offers it on a port. An `OwnersRisk`
is the sum of all owners' risks, for any solver that needs no single rows; an `OwnersScoresRisk` is one of all rows
together, from owners that allow scores of single rows.
"""

from bmrm.owners import resume as _resume  # noqa: F401  (it tells checkpoints what the owners' data are)
from bmrm.owners.connected import Owners
from bmrm.owners.gathered import OwnersRows, OwnersScoresRisk
from bmrm.owners.guard import GuardSettings, OwnerError, Refused
from bmrm.owners.identity import Identity
from bmrm.owners.ledger import BudgetSpent
from bmrm.owners.limits import Limits
from bmrm.owners.owner import Owner
from bmrm.owners.privacy import Privacy
from bmrm.owners.risk import OwnersRisk
from bmrm.owners.server import ShardServer
from bmrm.owners.tls import TLS

__all__ = [
    "TLS",
    "BudgetSpent",
    "GuardSettings",
    "Identity",
    "Limits",
    "Owner",
    "OwnerError",
    "Owners",
    "OwnersRisk",
    "OwnersRows",
    "OwnersScoresRisk",
    "Privacy",
    "Refused",
    "ShardServer",
]
