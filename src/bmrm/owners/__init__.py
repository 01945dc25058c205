"""Several owners: rows stay with those they belong to; values and subgradients of sums over them travel.

An `Owner` has data and answers evaluations, watched by its guard; a `ShardServer` offers it on a port. An `OwnersRisk`
is the sum of all owners' risks, for any solver that needs no single rows.
"""

from bmrm.owners.guard import GuardSettings, OwnerError, Refused
from bmrm.owners.ledger import BudgetSpent
from bmrm.owners.owner import Owner
from bmrm.owners.privacy import Privacy
from bmrm.owners.risk import Owners, OwnersRisk
from bmrm.owners.server import ShardServer
from bmrm.owners.tls import TLS

__all__ = [
    "TLS",
    "BudgetSpent",
    "GuardSettings",
    "Owner",
    "OwnerError",
    "Owners",
    "OwnersRisk",
    "Privacy",
    "Refused",
    "ShardServer",
]
