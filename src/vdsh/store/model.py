"""The model of a store: its fingerprint, and itself, loaded when a text needs it."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from vdsh.codes import Codes
from vdsh.embed import embed
from vdsh.errors import FolderError, InputError
from vdsh.jit import once
from vdsh.model import Model, NotLearnedError, WordsOnly, as_model
from vdsh.model.model import warn_of_empty
from vdsh.model.vectors import check_vectors

PIECE = 64_000_000  # bytes of a model's file in a row of a database


def load_model(given: Any) -> Model:
    """Return a model: of a fitted `TextHasher`, as it is, or read from the path of a folder."""
    if isinstance(given, str | os.PathLike):
        return Model.load(given)
    return as_model(given)


def to_pieces(model: Model, size: int = PIECE) -> Iterator[tuple[str, str, int, bytes]]:
    """Cut the files of a model into rows: its fingerprint, name, number, bytes."""
    for name, content in model.to_files().items():
        for number, first in enumerate(range(0, max(len(content), 1), size)):
            yield model.fingerprint, name, number, content[first : first + size]


def from_pieces(rows: Iterable[tuple[str, bytes]], fingerprint: str, shown: str) -> Model:
    """Load a model from the names and bytes of its rows, which are in order.

    It must be the one that the store should have.
    """
    if fingerprint == WordsOnly.fingerprint:
        return WordsOnly()
    files: dict[str, list[bytes]] = {}
    for name, data in rows:
        files.setdefault(name, []).append(data)
    if not files:
        raise FolderError(f"'{shown}' is damaged: its model is missing. Restore a copy.")
    model = Model.from_files({name: b"".join(data) for name, data in files.items()}, shown)
    if model.fingerprint != fingerprint:
        raise FolderError(
            f"The model in '{shown}' is not the one this store was made with "
            f"({fingerprint[:12]}). Restore a backup, or index the documents again."
        )
    return model


class StoreModel:
    """The model that made a store's codes.

    `facts` is what the store says about itself, and `load` loads the model of a fingerprint.
    `given`: a model that is in memory already; used where it is this one.
    """

    def __init__(
        self, facts: Mapping[str, str], load: Callable[[str], Model], given: Model | None = None
    ) -> None:
        self.n_bits = int(facts["n_bits"])
        self.fingerprint = facts["fingerprint"]
        self._load = load
        self._given = given if given and given.fingerprint == self.fingerprint else None
        self.n_empty = 0  # texts without a known word, since the last warning

    @once
    def model(self) -> Model:
        """Load the model when it is first used."""
        model = self._given or self._load(self.fingerprint)
        if model.n_bits != self.n_bits:
            raise FolderError(
                f"This store says that its codes have {self.n_bits} bits, but its model has "
                f"{model.n_bits}: it is damaged. Restore a copy."
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
    """Hash the vectors of documents, all of which are looked at before anything is written."""
    if codes is not None:
        raise InputError("Give codes or vectors, and not both.")
    own, texts = model.model, [document.text for document in documents]
    if not own.n_bits:
        raise NotLearnedError(
            "This store has not learned codes yet, so nothing hashes vectors. Open a new store "
            "with a VectorHasher or a JointModel; or have texts embedded: vdsh learn --embed."
        )
    without = [i for i, one in enumerate(vectors) if one is None] if type(vectors) is list else []
    if without and not own.texts_suffice:
        raise InputError(
            f"Document '{documents[without[0]].id}' has no vector, and the model of this store "
            "needs one. Give it."
        )
    if without:
        made = iter(embed([texts[i] for i in without], own.embedder))
        vectors = [next(made) if one is None else one for one in vectors]
    if own.takes_vectors:
        return own.encode_vectors(check_vectors(vectors, len(texts)))
    return model.encode(texts, vectors)
