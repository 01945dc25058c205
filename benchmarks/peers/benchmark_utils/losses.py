"""The losses of the benchmark by the names in its tables, with their parameters."""

from dataclasses import dataclass, field

import bmrm


@dataclass(frozen=True)
class Kind:
    """A loss with its parameters, and the kind of target it is for."""

    name: str
    task: str
    parameters: dict = field(default_factory=dict)

    def ours(self):
        """The loss as this library has it: its definition is the one that counts."""
        return bmrm.losses.get(self.name, **self.parameters)


LOSSES = {
    "hinge": Kind("hinge", "classification"),
    "squared_hinge": Kind("squared_hinge", "classification"),
    "logistic": Kind("logistic", "classification"),
    "least_squares": Kind("least_squares", "regression"),
    "least_absolute": Kind("least_absolute", "regression"),
    "quantile_0.5": Kind("quantile", "regression", {"tau": 0.5}),
    "quantile_0.9": Kind("quantile", "regression", {"tau": 0.9}),
    "epsilon_insensitive": Kind("epsilon_insensitive", "regression", {"eps": 0.1}),
    "huber": Kind("huber", "regression", {"delta": 1.0}),
    "poisson": Kind("poisson", "counts"),
}


def suits(loss, task):
    """Whether targets of this task make sense for the loss; least squares takes signs as numbers."""
    return LOSSES[loss].task == task or (loss == "least_squares" and task == "classification")
