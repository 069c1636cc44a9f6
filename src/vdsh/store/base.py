"""The contract of every store, and what it answers with."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.model import Model
    from vdsh.store.model import StoreModel

Query = str | Codes
Where = Mapping[str, Any]

RANKS = ("distance", "expected")
_MOST_SHOWN = 8  # words in a sentence


class Hit(NamedTuple):
    """One document that was found.

    Attributes
    ----------
    id : str
    distance : int
        Bits in which its code differs from the query's.
    text : str
    labels : tuple of str, or None
    metadata : dict
    expected : float or None
        The expected distance, where hits were ranked by it.
    code : str
        Its code in hex.
    """

    id: str
    distance: int
    text: str
    labels: tuple[str, ...] | None
    metadata: dict[str, Any]
    expected: float | None = None
    code: str = ""

    def as_fields(self) -> dict[str, Any]:
        """Give the JSON object that command line and server share."""
        fields = self._asdict()
        if self.expected is None:
            del fields["expected"]
        return fields


class Hits(list[Hit]):
    """What was found, nearest first, and which words of the query could not help.

    Parameters
    ----------
    hits : iterable of Hit
    unknown : iterable of str
        Words of the query that the model does not know.
    empty : bool
        Whether the query is a text without any word that counts; such a text finds nothing.

    Attributes
    ----------
    unknown : list of str
    warning : str or None
        A sentence for the person who asked; None where every word was known.
    """

    def __init__(
        self, hits: Iterable[Hit] = (), unknown: Iterable[str] = (), *, empty: bool = False
    ) -> None:
        super().__init__(hits)
        self.unknown = list(unknown)
        self.warning = _describe_unknown(self.unknown, empty=empty)

    def about_query(self) -> dict[str, Any]:
        """Give the JSON fields about unknown words; none where every word was known."""
        if self.warning is None:
            return {}
        return {"unknown": self.unknown, "warning": self.warning}


class Within(NamedTuple):
    """The nearest documents within a radius, and how many there are in all."""

    hits: Hits
    total: int


class Duplicates(NamedTuple):
    """Documents that are nearly the same.

    Attributes
    ----------
    keep : str
        The lowest id among them.
    others : list of (str, int, float)
        The other ids, with the distance of their codes and the similarity of their texts to those
        of `keep`; the most similar first, ties by id.
    """

    keep: str
    others: list[tuple[str, int, float]]


class Store(ABC):
    """Documents under string ids, with their codes; searched by text or code.

    Use it as a context manager, or call `close`.
    """

    _model: "StoreModel"

    @property
    def model(self) -> "Model":
        """The model that makes the codes, loaded when first used."""
        return self._model.model

    @abstractmethod
    def upsert(
        self,
        documents: Iterable[Document],
        codes: Codes | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Add documents; one whose id is there already replaces the old one.

        Parameters
        ----------
        documents : iterable of Document
            Read as a stream and committed batch by batch.
        codes : ndarray of uint8 of shape (n_docs, n_bytes), optional
            Their codes, where they are known; texts are then not encoded.
        progress : callable, optional
            Called with the number of documents committed so far. Those are safe from then on.

        Returns
        -------
        int
            How many documents were written; one given twice counts twice.
        """

    @abstractmethod
    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents; return how many were there."""

    @abstractmethod
    def get(self, id: str) -> Document | None:
        """Return a document, or None where there is none of that id."""

    @abstractmethod
    def count(self, where: Where | None = None) -> int:
        """Count all documents, or those that match a filter."""

    @abstractmethod
    def search(
        self, query: Query, k: int = 10, *, where: Where | None = None, rank: str = "distance"
    ) -> Hits:
        """Find the k documents nearest to a text or a code.

        Parameters
        ----------
        query : str, or ndarray of uint8 of shape (n_bytes,)
        k : int, default=10
        where : dict, optional
            Which documents may be found, see `vdsh.store.where`.
        rank : {"distance", "expected"}, default="distance"
            "expected" re-orders the nearest documents (4k of them, 1000 at least) by the expected
            distance under the query's posterior: the model knows how sure each bit is. It needs a
            text and a model with a posterior.

        Returns
        -------
        Hits
            A list of `Hit`, nearest first, ties by id; fewer than k where there are no more. Its
            `unknown` has the words of a text that the model does not know. A text without any
            known word finds nothing, and `warning` says so.
        """

    @abstractmethod
    def within(self, query: Query, radius: int = 2, *, where: Where | None = None) -> Hits:
        """Find every document within `radius` bits of a text or a code, nearest first."""

    @abstractmethod
    def within_at_most(
        self, query: Query, radius: int, limit: int, *, where: Where | None = None
    ) -> Within:
        """Find the `limit` nearest documents within a radius, and count all of them."""

    def find(self, id: str) -> Hit | None:
        """Return a document with its code, as a hit of distance 0, or None where there is none."""
        n_bytes = next((codes.shape[1] for _, codes in self.codes(1)), 0)
        nothing = np.zeros(n_bytes, np.uint8)
        found = self.search(nothing, 1, where={"id": id}) if n_bytes else []
        return found[0]._replace(distance=0) if found else None

    def labels(self) -> list[str]:
        """List the labels that documents have, in order."""
        return sorted({x for batch in self.documents() for d in batch for x in d.labels or ()})

    @abstractmethod
    def documents(self, batch_size: int = 1000) -> Iterator[list[Document]]:
        """Iterate over all documents in the order of their ids.

        The store may change meanwhile: each batch is read when it is asked for.
        """

    @abstractmethod
    def codes(self, batch_size: int = 10_000) -> Iterator[tuple[list[str], Codes]]:
        """Iterate over ids and codes, in the order of the ids."""

    @abstractmethod
    def entries(
        self, after: str = "", batch_size: int = 1000
    ) -> Iterator[tuple[list[Document], Codes]]:
        """Iterate over documents with their codes, in the order of ids, those above `after`."""

    @abstractmethod
    def duplicates(
        self, radius: int | None = None, *, similarity: float = 0.8
    ) -> Iterator[Duplicates]:
        """Find groups of documents whose texts are nearly that of the one that is kept.

        In the order of ids, each document that is in no group yet leads a new one and takes all
        later documents similar to it that are in none. Groups of one are left out.

        Parameters
        ----------
        radius : int, optional
            Take only those whose codes differ in at most so many bits; any by default.
        similarity : float, default=0.8
            Pairs of successive words that two texts share, out of all that either has; from 0.1
            to 1. About one in 500 pairs that are just so similar is missed, and fewer of those
            that are more so; what is found is always so similar.
        """

    @abstractmethod
    def info(self) -> dict[str, Any]:
        """Describe the store: documents, bits, model, fields, labels, bytes on disk."""

    def interrupt(self) -> None:  # noqa: B027  (not every engine can)
        """Make a call of another thread give up soon, where the engine can; it raises then."""

    def is_in_place(self) -> bool:
        """Say whether the store is still where it was opened, not removed or replaced."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Give the store's files back; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _describe_unknown(words: list[str], *, empty: bool) -> str | None:
    """Say in a sentence which words of a query are not known.

    >>> _describe_unknown(["xyzzy"], empty=False)
    'Not known to the model, so without effect: xyzzy.'
    """
    if empty and not words:
        return (
            "The text has no word that counts (stop words such as 'the' do not), so nothing is "
            "found. Give more words."
        )
    if not words:
        return None
    more = len(words) - _MOST_SHOWN
    shown = ", ".join(words[:_MOST_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    if empty:
        return f"No word of the text is known to the model, so nothing is found: {shown}."
    return f"Not known to the model, so without effect: {shown}."


def check_rank(rank: Any, query: Query) -> None:
    """Raise unless hits can be ranked that way."""
    if rank not in RANKS:
        raise InputError(f'rank must be "distance" or "expected". Got {rank!r}.')
    if rank == "expected" and not isinstance(query, str):
        raise InputError(
            'rank="expected" needs a text: a code does not say how sure its bits are. '
            'Give the text, or use rank="distance".'
        )


def check_code(code: Any, n_bits: int) -> Codes:
    """Return a single query code, or say why it is none."""
    given = np.asarray(code)
    if given.dtype != np.uint8 or given.ndim != 1:
        raise InputError(
            "A query must be a text or a code: a uint8 array of shape (n_bytes,). "
            f"Got {type(code).__name__} of type {given.dtype} and shape {given.shape}."
        )
    if 8 * len(given) != n_bits:
        raise InputError(
            f"This store holds {n_bits}-bit codes but the query has {8 * len(given)}. "
            "Encode it with the store's own model."
        )
    checked: Codes = given
    return checked
