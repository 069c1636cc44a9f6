"""`Estimator`: what scikit-learn asks of an estimator, without importing it."""

import sys
from contextlib import suppress
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse

from vdsh.errors import InputError, suggest


class NotFittedError(InputError, AttributeError):
    """An estimator that has learned nothing is asked for something."""


class Estimator:
    """Base of what learns: its settings are the arguments of the constructor."""

    if TYPE_CHECKING:  # what is learned has names of its own
        n_features_in_: int

        def __getattr__(self, name: str) -> Any: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all settings by name; `deep` changes nothing."""
        return {name: getattr(self, name) for name in sorted(signature(type(self)).parameters)}

    def set_params(self, **params: Any) -> Self:
        """Change settings."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise InputError(f"There is no setting '{name}'. {suggest(name, known)}")
            setattr(self, name, value)
        return self

    def fit_transform(self: Any, X: Any, *y: Any, **given: Any) -> Any:
        """Learn from X, and transform it."""
        return self.fit(X, *y, **given).transform(X)

    def __repr__(self) -> str:
        defaults = signature(type(self)).parameters
        given = [f"{k}={v!r}" for k, v in self.get_params().items() if v is not defaults[k].default]
        return f"{type(self).__name__}({', '.join(given)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(None, TargetTags(required=False), TransformerTags(preserves_dtype=[]))


def check_is_fitted(estimator: Estimator, attribute: str) -> None:
    """Raise where nothing was learned: scikit-learn's error for those who have imported it."""
    if not hasattr(estimator, attribute):
        theirs = sys.modules.get("sklearn.exceptions")
        error = theirs.NotFittedError if theirs else NotFittedError
        raise error(f"This {type(estimator).__name__} has learned nothing yet. Call `fit` first.")


def check_random_state(given: Any) -> np.random.RandomState:
    """Take a generator as it is, make one of a seed, or find numpy's own for None."""
    if isinstance(given, np.random.RandomState):
        return given
    try:
        return np.random.mtrand._rand if given is None else np.random.RandomState(given)
    except (TypeError, ValueError) as error:
        raise InputError(f"random_state must be a seed below 2^32. Got {given!r}.") from error


def check_matrix(estimator: Any, X: Any, *, reset: bool, negative: bool = False) -> Any:
    """Return X as float32, or say what is wrong in words that scikit-learn's checks look for."""
    if hasattr(X, "columns") or hasattr(estimator, "feature_names_in_"):
        with suppress(ImportError):  # without scikit-learn names are not remembered
            from sklearn.utils.validation import validate_data

            validate_data(estimator, X, skip_check_array=True, reset=reset)
    sparse = issparse(X)
    X = X if sparse else np.asarray(X)
    if X.ndim != 2:
        raise InputError(f"X must be documents by terms. Got shape {X.shape}. Reshape your data.")
    if X.dtype.kind == "c":
        raise InputError("Complex data not supported. Give real numbers.")
    with np.errstate(over="ignore"):  # said below
        X = (csr_array(X) if sparse else X).astype(np.float32, copy=False)
    values = X.data if sparse else X
    if not np.isfinite(values).all():
        raise InputError("X has a value that is NaN, inf or too large for float32.")
    if not negative and (values < 0).any():
        raise InputError("Negative values in data: X must be counts, or weights of terms.")
    for size, what in zip(X.shape, ("sample(s)", "feature(s)"), strict=True):
        if not size:
            raise InputError(f"X has 0 {what} (shape={X.shape}) while a minimum of 1 is required.")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X
