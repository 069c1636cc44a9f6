"""What a store here and one on another machine have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

from vdsh.documents import Document
from vdsh.store.hits import Hit, Hits, to_document
from vdsh.store.queries import Query, VectorQuery
from vdsh.store.where import Filter


class Verbs(ABC):
    """What Python asks of a collection of documents, in the verbs of `Store` and `Client`."""

    @abstractmethod
    def count(self, where: Filter | None = None) -> int:
        """Count all documents, or those that match a filter."""

    @abstractmethod
    def documents(self, batch_size: int = 1000) -> Iterator[list[Document]]:
        """Iterate over all documents in the order of their ids."""

    @abstractmethod
    def find(self, id: str) -> Hit | None:
        """Return a document with its code, as a hit of distance 0, or None where there is none."""

    @abstractmethod
    def search_many(
        self,
        queries: Sequence[Query],
        k: int = 10,
        *,
        where: Filter | None = None,
        rank: str | None = None,
        strict: bool = False,
    ) -> list[Hits]:
        """Search for several texts or codes; texts are encoded together. See `search`."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # also when it is empty

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id != "" and self.get(id) is not None

    def __iter__(self) -> Iterator[Document]:
        for documents in self.documents():
            yield from documents

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, id: str) -> Document | None:
        """Return a document, or None where there is none of that id."""
        hit = self.find(id)
        return None if hit is None else to_document(hit)

    def search(
        self,
        query: Query = "",
        k: int = 10,
        *,
        vector: Any = None,
        where: Filter | None = None,
        rank: str | None = None,
        strict: bool = False,
    ) -> Hits:
        """Find the k best documents for a text, or the k nearest to a code or a vector.

        Parameters
        ----------
        query : str, or ndarray of uint8 of shape (n_bytes,)
            In a text of one line and up to 32 words, quote a phrase to require it and prefix a
            word with `-` to exclude it: `"red planet" -rover`.
        k : int, default=10
        vector : array of shape (n_dimensions,), optional
            What to look for where the model hashes vectors, alone or with a text, whose words are
            looked for too. Without it, words alone find documents.
        where : dict, optional
            Which documents may be found, see `vdsh.store.where`.
        rank : {"relevance", "distance", "expected"}, optional
            "relevance", the default for a text, takes words and codes together: all words of the
            documents count, known to the model or not. "distance", the default for a code, is
            that of the codes. "expected", the default for a vector, re-orders the nearest
            documents (4k of them, 1000 at least) by the expected distance: the query keeps how
            sure each of its bits is. It needs a vector, or a text and a model with a posterior.
        strict : bool, default=False
            Leave out hits that are only `related`: documents without any word of the text, or with
            only parts of the name that it is.

        Returns
        -------
        Hits
            A list of `Hit`, best first, ties by id; fewer than k where there are no more. Its
            `unknown` has the words of a text that had no effect. A text without any word that is
            known finds nothing, and `warning` says so.
        """
        asked = query if vector is None else VectorQuery(vector, query)
        return self.search_many([asked], k, where=where, rank=rank, strict=strict)[0]
