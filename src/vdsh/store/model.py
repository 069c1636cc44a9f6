"""The model of a store: its fingerprint, where it is, loaded when a text needs it."""

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

from vdsh.codes import Codes
from vdsh.errors import FolderError
from vdsh.model import Model, as_model
from vdsh.model.model import warn_of_empty


def load_model(given: Any) -> Model:
    """Return a model: of a fitted `TextHasher`, as it is, or read from the path of a folder."""
    if isinstance(given, str | os.PathLike):
        return Model.load(given)
    return as_model(given)


class StoreModel:
    """The model that made a store's codes.

    Parameters
    ----------
    n_bits : int
    fingerprint : str
    folder : path
        Where it is kept, for people and for `load`.
    given : Model, optional
        The model itself, where it is in memory already.
    load : callable, optional
        How it is loaded from its place; by default as a model folder.
    """

    def __init__(
        self,
        n_bits: int,
        fingerprint: str,
        folder: str | os.PathLike[str],
        given: Model | None = None,
        *,
        load: Callable[[Any], Model] = load_model,
    ) -> None:
        self.n_bits = n_bits
        self.fingerprint = fingerprint
        self.folder = folder
        self._given = given
        self._load = load
        self.n_empty = 0  # texts without a known word, since the last warning

    @cached_property
    def model(self) -> Model:
        """The model, loaded when first used."""
        if self._given is not None:
            return self._given
        model = self._load(self.folder)
        if model.fingerprint != self.fingerprint:
            raise FolderError(
                f"The model in '{self.folder}' is not the one this store was made with "
                f"({self.fingerprint[:12]}). Put that one back, or index the documents anew."
            )
        return model

    def encode(self, texts: list[str]) -> Codes:
        """Hash texts; those without a known word get the code of an empty document."""
        codes, n_empty = self.model.encode_and_count(texts)
        self.n_empty += n_empty
        return codes

    def warn_of_empty(self, n_documents: int) -> None:
        """Warn of the texts without a known word, and start counting anew."""
        if self.n_empty:
            warn_of_empty(self.n_empty, n_documents)
            self.n_empty = 0
