"""The model of a store: its fingerprint, where it is, loaded when a text needs it."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdsh.codes import Codes
from vdsh.errors import FolderError, InputError
from vdsh.model import Model, as_model
from vdsh.model.model import warn_of_empty
from vdsh.model.vectors import check_vectors

if TYPE_CHECKING:
    from vdsh.store.engine import Engine

FOLDER = "model"  # where a store in a folder keeps it
INSIDE = f"{FOLDER}(-[0-9a-f]{{12}})?"  # or one that came later


def load_model(given: Any) -> Model:
    """Return a model: of a fitted `TextHasher`, as it is, or read from the path of a folder."""
    if isinstance(given, str | os.PathLike):
        return Model.load(given)
    return as_model(given)


def to_files(model: Model | None) -> dict[str, bytes]:
    """Give the files of a model's folder, for a database to keep; none where there is no model."""
    if model is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, FOLDER))
        return {file.name: file.read_bytes() for file in Path(folder, FOLDER).iterdir()}


def from_files(files: Mapping[str, bytes]) -> Model:
    """Load a model from what `to_files` gave."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            Path(folder, Path(name).name).write_bytes(content)
        return load_model(folder)


class StoreModel:
    """The model that made a store's codes.

    Parameters
    ----------
    place : str
        Where it is kept, for people.
    load : callable
        Loads it from there.
    given : Model, optional
        The model itself, where it is in memory already.
    """

    def __init__(
        self,
        n_bits: int,
        fingerprint: str,
        place: str,
        load: Callable[[], Model],
        given: Model | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.fingerprint = fingerprint
        self.place = place
        self._load = load
        self._given = given
        self.n_empty = 0  # texts without a known word, since the last warning

    @cached_property
    def model(self) -> Model:
        """The model, loaded when first used."""
        model = self._given or self._load()
        if model.fingerprint != self.fingerprint:
            raise FolderError(
                f"The model in '{self.place}' is not the one this store was made with "
                f"({self.fingerprint[:12]}). Put that one back, or index the documents anew."
            )
        return model

    def encode(self, texts: list[str], vectors: Any = None) -> Codes:
        """Hash texts; those without a known word get the code of an empty document."""
        codes, n_empty = self.model.encode_and_count(texts, vectors)
        self.n_empty += n_empty
        return codes

    def warn_of_empty(self, n_documents: int) -> None:
        """Warn of the texts without a known word, and start counting anew."""
        if self.n_empty:
            warn_of_empty(self.n_empty, n_documents)
            self.n_empty = 0


def encode_given(
    model: StoreModel, vectors: Any, documents: Sequence[Any], codes: Codes | None
) -> Codes:
    """Hash the vectors of documents, all of which are looked at before anything is written.

    Where the model sees words too, a document may have None for a vector.
    """
    if codes is not None:
        raise InputError("Give codes or vectors, and not both.")
    if model.model.takes_vectors:
        given = zip(documents, vectors, strict=False) if isinstance(vectors, list) else ()
        for document, vector in given:
            if vector is None:
                raise InputError(
                    f"Document '{document.id}' has no vector, and the model of this store hashes "
                    "nothing else. Give one."
                )
        return model.model.encode_vectors(check_vectors(vectors, len(documents)))
    return model.encode([document.text for document in documents], vectors)


def store_model(
    engine: "Engine", meta: Mapping[str, str], given: Model | None = None
) -> StoreModel:
    """Say where the model of an open store is."""
    place, load = engine.model_place, engine.load_model
    if meta["keep_model"] == "reference":
        place, load = meta["model"], partial(load_model, meta["model"])
    return StoreModel(int(meta["n_bits"]), meta["fingerprint"], place, load, given)
