"""Structured models: outputs that are more than a number or a class.

A model knows how to score outputs, what a wrong one costs, and how to find the best; it knows no data, no weights and
no solver. Losses ask it for worst outputs or partition functions.
"""

from bmrm.structured.base import MODELS, BatchedModel, Examples, ScoredModel, StructuredModel
from bmrm.structured.chain import ChainModel
from bmrm.structured.folding import FoldingModel
from bmrm.structured.matching import MatchingModel
from bmrm.structured.pystruct import PystructModel
from bmrm.structured.segments import SemiMarkovModel
from bmrm.structured.sequences import Sequences

__all__ = [
    "MODELS",
    "BatchedModel",
    "ChainModel",
    "Examples",
    "FoldingModel",
    "MatchingModel",
    "PystructModel",
    "ScoredModel",
    "SemiMarkovModel",
    "Sequences",
    "StructuredModel",
]
