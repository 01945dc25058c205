"""Risks: a vector w comes in, the value of R and a subgradient go out.

`Point` and `Line` remember scores, so that a search along a line never touches the data again. A risk must not
know lam, the regularizer or the solver: that is what makes its planes valid for every lam.
"""

from bmrm.risks.base import Line, OracleRisk, Point, Risk, as_risk
from bmrm.risks.linear import LinearLine, LinearPoint, LinearRisk
from bmrm.risks.sharded import ShardedRisk, linear_risk
from bmrm.risks.sharded_structured import ShardedStructuredRisk, structured_risk
from bmrm.risks.shards import Shards
from bmrm.risks.structured import StructuredRisk

__all__ = [
    "Line",
    "LinearLine",
    "LinearPoint",
    "LinearRisk",
    "OracleRisk",
    "Point",
    "Risk",
    "ShardedRisk",
    "ShardedStructuredRisk",
    "Shards",
    "StructuredRisk",
    "as_risk",
    "linear_risk",
    "structured_risk",
]
