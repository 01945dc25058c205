"""SequenceModel: a trained labeler of sequences, in memory and in a file that cannot run code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bmrm import model_file
from bmrm._errors import DataError
from bmrm.certificate import Certificate, Status
from bmrm.data.archive import Arrays
from bmrm.data.matrix import checked_threads
from bmrm.data.template import Template
from bmrm.losses.structured import STRUCTURED_LOSSES, StructuredLoss
from bmrm.model_file import typed
from bmrm.structured.attributes import Attributes
from bmrm.structured.chain import ChainModel
from bmrm.structured.tables import Feature, Table, Transition

Array = npt.NDArray[np.float64]

KIND = "sequences"
START, END = "(start)", "(end)"


@dataclass(frozen=True, eq=False)
class SequenceModel:
    """Weights of a chain with the names of its attributes and labels: what `SequenceLabeler` learns.

    Parameters
    ----------
    coef : array of shape (dim,)
        The weights, in the order of the chain.
    loss : StructuredHinge or StructuredLog
        With the chain.
    attributes : Attributes
        What the columns stand for.
    classes : array of shape (k,)
        The labels, numbers or text.
    regularizer : str
        Its name.
    lam : float
    solver : str
        Its name.
    tol : float
        The relative gap that was asked for.
    certificate : Certificate
    status : Status
    template : Template, optional
        Makes attributes of the columns of a file.
    config : dict, optional
        All settings of the run, as plain JSON values.
    history : dict, optional
        A summary of the run (iterations, passes, seconds), as plain JSON values.
    version : str
        The version of bmrm that trained the model.

    Examples
    --------
    >>> import bmrm
    >>> X, y = [[["a"], ["b"]], [["b"], ["b"]]], [["first", "second"], ["second", "second"]]
    >>> model = bmrm.SequenceLabeler(lam=0.1).fit(X, y).to_model()
    >>> model.predict([[["a"], ["b"]]])
    [['first', 'second']]
    """

    coef: Array
    loss: StructuredLoss
    attributes: Attributes
    classes: npt.NDArray[Any]
    regularizer: str
    lam: float
    solver: str
    tol: float
    certificate: Certificate
    status: Status
    template: Template | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)
    version: str = field(default_factory=lambda: version("bmrm"))

    def __post_init__(self) -> None:
        chain = self.loss.model
        if not isinstance(chain, ChainModel):
            raise TypeError(f"the loss of a SequenceModel has a ChainModel, got {type(chain).__name__}")
        if self.coef.shape != (chain.dim,):
            raise ValueError(f"coef has shape {self.coef.shape}, but the chain has {chain.dim} weights")
        if len(self.classes) != chain.n_labels or self.attributes.n_attributes != chain.n_attributes:
            raise ValueError(
                f"{len(self.classes)} labels and {self.attributes.n_attributes} attributes do not fit a chain of "
                f"{chain.n_labels} and {chain.n_attributes}"
            )

    @property
    def chain(self) -> ChainModel:
        """The model that scores sequences."""
        assert isinstance(self.loss.model, ChainModel)
        return self.loss.model

    @property
    def task(self) -> str:
        """'sequences'."""
        return KIND

    def predict(self, X: Any, n_threads: int | None = None) -> list[list[Any]]:
        """Return the labels of each sequence.

        Parameters
        ----------
        X : list of sequences
            As in training; attributes that did not occur there are ignored.
        n_threads : int, optional
            All cores by default, or for -1 (all but one for -2).
        """
        examples = self.chain.encode(self.attributes.encode(X))
        found = self.chain.decode(examples, self.coef, checked_threads(n_threads))
        return [self.classes[codes].tolist() for codes in found]

    def marginals(self, X: Any, n_threads: int | None = None) -> list[Array]:
        """Return an array (tokens, labels) for each sequence: the probability of each label of each token.

        Raises
        ------
        DataError
            If the loss is not `structured_log`, which alone makes them probabilities.
        """
        if self.loss.name != "structured_log":
            raise DataError(f"loss '{self.loss.name}' yields no probabilities; structured_log does")
        examples = self.chain.encode(self.attributes.encode(X))
        return list(self.chain.marginals(examples, self.coef, checked_threads(n_threads)))

    def top_features(self, n: int = 20, label: Any = None) -> Table[Feature]:
        """Return the attributes with the largest weights, by absolute value, the largest first.

        Parameters
        ----------
        n : int
            How many.
        label : optional
            Only those of this label.
        """
        attributes, labels, weights = self.chain.emission_table(self.coef)
        if label is not None:
            wanted = np.flatnonzero(self.classes == label)
            if not wanted.size:
                raise ValueError(f"label {label!r} is not one of {self.classes.tolist()}")
            of_label = labels == wanted[0]
            attributes, labels, weights = attributes[of_label], labels[of_label], weights[of_label]
        order = np.argsort(-np.abs(weights), kind="stable")[:n]
        names = self.classes[labels[order]].tolist()
        rows = zip(attributes[order].tolist(), names, weights[order].tolist())
        return Table(Feature(self.attributes.name(column), name, weight) for column, name, weight in rows)

    def transitions(self) -> Table[Transition]:
        """Return the weights of transitions, and of the labels at both ends, the largest first."""
        chain, names = self.chain, self.classes.tolist()
        table = chain.transition_table(self.coef)
        places = np.argwhere(chain.weights.transitions).tolist()
        rows = [Transition(names[i], names[j], float(table[i, j])) for i, j in places]
        start, end = (self.coef[chain.blocks()[block]].tolist() for block in ("start", "end"))
        rows += [Transition(START, name, weight) for name, weight in zip(names, start)]
        rows += [Transition(name, END, weight) for name, weight in zip(names, end)]
        return Table(sorted(rows, key=lambda row: -row.weight))

    def save(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        """Write a NumPy .npz archive of plain arrays: to an open file, or to a path, complete or not at all.

        Raises
        ------
        DataError
            If the file cannot be written.
        """
        model_file.write(path, _header_of(self), _arrays_of(self))

    def __str__(self) -> str:
        return f"{self.loss.name} + {self.lam:g} {self.regularizer}: {self.certificate}"


def _header_of(model: SequenceModel) -> dict[str, Any]:
    parameters = model_file.plain_parameters(model.loss)
    parameters.pop("model")
    template = model.template
    return {
        "kind": KIND,
        "version": model.version,
        "loss": model.loss.name,
        "loss_parameters": parameters,
        "n_attributes": model.attributes.n_attributes,
        "hashed": model.attributes.hashed,
        "start_end": bool(model.chain.weights.start_end),
        "pair_attributes": model.chain.pair_attributes,
        "template": None if template is None else {"text": template.text, "source": template.source},
        "regularizer": model.regularizer,
        "lam": float(model.lam),
        "solver": model.solver,
        "tol": float(model.tol),
        "certificate": model_file.pack(model.certificate),
        "status": model.status.name,
        "config": dict(model.config),
        "history": dict(model.history),
    }


def _arrays_of(model: SequenceModel) -> Arrays:
    weights, names = model.chain.weights, model.attributes.names
    arrays: Arrays = {
        "coef": np.ascontiguousarray(model.coef, dtype=np.float64),
        "classes": model_file.plain_labels(model.classes),
        "transitions": np.ascontiguousarray(weights.transitions),
        "costs": np.ascontiguousarray(model.chain.costs),
    }
    if weights.labels is not None:
        arrays["emission_starts"] = weights.starts
        arrays["emission_labels"] = weights.labels
    if names is not None:
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        arrays["names"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        arrays["name_ends"] = np.cumsum([len(name) for name in encoded], dtype=np.int64)
    return arrays


def of_file(header: dict[str, Any], arrays: Arrays) -> SequenceModel:
    """Return the model that a file holds; what does not fit together raises."""
    n_attributes = typed(header, "n_attributes", int)
    emissions = (arrays["emission_starts"], arrays["emission_labels"]) if "emission_starts" in arrays else None
    k, pair_attributes = len(arrays["classes"]), typed(header, "pair_attributes", int)
    least = (0 if emissions else n_attributes * k) + pair_attributes * k * k
    if least > arrays["coef"].size:  # before memory is set aside for them
        raise DataError(
            f"its header speaks of {n_attributes} attributes, and {pair_attributes} of steps, for {k} labels, but it "
            f"has {arrays['coef'].size} weights"
        )
    chain = ChainModel(
        k,
        n_attributes,
        emissions=emissions,
        transitions=arrays["transitions"],
        start_end=typed(header, "start_end", bool),
        pair_attributes=pair_attributes,
        costs=arrays["costs"],
    )
    parameters = typed(header, "loss_parameters", dict)
    template = header["template"]
    return SequenceModel(
        coef=arrays["coef"],
        loss=STRUCTURED_LOSSES.make(typed(header, "loss", str), {**parameters, "model": chain}),
        attributes=Attributes(n_attributes, _names_of(arrays), typed(header, "hashed", bool)),
        classes=arrays["classes"],
        template=None if template is None else Template.parse(template["text"].split("\n"), template["source"]),
        regularizer=typed(header, "regularizer", str),
        lam=typed(header, "lam", float),
        solver=typed(header, "solver", str),
        tol=typed(header, "tol", float),
        certificate=model_file.unpack(typed(header, "certificate", dict)),
        status=Status[typed(header, "status", str)],
        config=typed(header, "config", dict),
        history=typed(header, "history", dict),
        version=typed(header, "version", str),
    )


def _names_of(arrays: Arrays) -> list[str] | None:
    if "names" not in arrays:
        return None
    content, ends = arrays["names"].tobytes(), arrays["name_ends"].tolist()
    if ends != sorted(ends) or (ends and (ends[0] < 0 or ends[-1] != len(content))):
        raise DataError("the names of its attributes are cut at impossible places")
    return [content[i:j].decode("utf-8", "surrogatepass") for i, j in zip([0, *ends], ends)]
