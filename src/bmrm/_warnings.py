"""Warnings about models that are optimal for their formula and useless to their user."""

from __future__ import annotations


class UselessModelWarning(UserWarning):
    """The fitted model solves the problem that was asked for, but it is hardly what the user wants."""


class ConstantModelWarning(UselessModelWarning):
    """The fitted model predicts one thing for everybody: w = 0, or the constant alone, is the solution.

    The message names the likely cause and the cure. There is no warning where nothing else can be learned: if there is
    one row, or if all targets of a regression are equal. Nor is there one if a limit ended the fit: scikit-learn's
    `ConvergenceWarning` says that.

    Examples
    --------
    >>> import warnings
    >>> import bmrm
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     model = bmrm.LinearRegressor(loss="epsilon_insensitive").fit([[0.0], [1.0]], [0.0, 0.05])
    >>> found[0].category.__name__, "eps" in str(found[0].message)
    ('ConstantModelWarning', True)
    """


class MeaninglessObjectiveWarning(UselessModelWarning):
    """The objective does not bound the score that the loss stands for: R(w) is below what any labeling can have.

    `precision_at_k` and `recall_at_k` do that if k is not the number of positive rows. The message names k and says how
    to choose it.
    """
