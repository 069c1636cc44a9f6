"""`Client`: the verbs of a `Store`, asked of a service."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import repeat
from typing import Any, Self
from urllib.parse import quote, urlencode

import numpy as np

from vdsh.client.connection import Connection, NoDocumentError
from vdsh.client.messages import (
    bodies,
    given,
    query_fields,
    read_hit,
    read_hits,
    to_json,
    to_list,
    write_document,
)
from vdsh.codes import Codes, from_hex
from vdsh.documents import Document
from vdsh.errors import EngineError, InputError, VdshError
from vdsh.search.checks import check_count, check_list
from vdsh.store.hits import Hit, Hits, Within, to_document
from vdsh.store.queries import AnyQuery, VectorQuery
from vdsh.store.rows import check_id
from vdsh.store.where import Filter


class Client:
    """A store that `vdsh serve` serves, with the verbs of `Store` and the same answers.

    Requests that get lost, or meet a service that is busy or starts again, are sent once more:
    each may safely be sent twice. Threads may share a client; they take turns. Use it as a context
    manager, or call `close`.

    Parameters
    ----------
    url : str
        Where the service is, as `http://127.0.0.1:8000` or `https://search.example/vdsh`.
    token : str, optional
        The token, where the service asks for one.
    store : str, optional
        The store's name, where the service has several; the first by default.
    timeout : float, default=60
        Seconds to wait for an answer.
    wait : float, default=10
        Seconds to go on trying where the service cannot be reached or is busy; 0 for not at all.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        store: str | None = None,
        timeout: float = 60,
        wait: float = 10,
    ) -> None:
        self._connection = Connection(url, token, timeout, wait)
        self._at = "/v1" if store is None else f"/v1/stores/{quote(check_id(store), safe='')}"

    def __repr__(self) -> str:
        at = self._connection.url + self._at
        try:
            facts = self.info()
        except VdshError as error:
            return f"<Client '{at}': {error}>"
        return f"<Client '{at}', {facts['documents']:,} documents, {facts['bits']} bits>"

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

    def info(self) -> dict[str, Any]:
        """Describe the store and the limits of the service."""
        return dict(self._connection.ask("GET", f"{self._at}/info"))

    def count(self, where: Filter | None = None) -> int:
        """Count all documents, or those that match a filter."""
        return int(self._post("count", {"where": where})["count"])

    def labels(self) -> list[str]:
        """List the labels that documents have, in order."""
        return list(self.info()["labels"])

    def search(
        self,
        query: AnyQuery = "",
        k: int = 10,
        *,
        vector: Any = None,
        where: Filter | None = None,
        rank: str | None = None,
        strict: bool = False,
    ) -> Hits:
        """Find the k best documents for a text, or the k nearest to a code. See `Store.search`."""
        if vector is not None:
            query = VectorQuery(vector, query)
        return self.search_many([query], k, where=where, rank=rank, strict=strict)[0]

    def search_many(
        self,
        queries: Sequence[AnyQuery],
        k: int = 10,
        *,
        where: Filter | None = None,
        rank: str | None = None,
        strict: bool = False,
    ) -> list[Hits]:
        """Search for several texts or codes; texts are sent and encoded together."""
        check_list("queries", queries)
        k, texts = check_count("k", k, 1), [query for query in queries if isinstance(query, str)]
        asked: Any = {"k": k, "where": where, "rank": rank, "strict": strict or None}

        def ask(query: AnyQuery) -> Any:
            return self._post("search", query_fields(query) | asked)

        if len(texts) < 2:
            return [read_hits(ask(query)) for query in queries]
        most = max(1, self._limits["k"] // k)
        sent = self._send("search_many", "texts", map(to_json, texts), most, **asked)
        found = iter([one for answer in sent for one in answer["answers"]])
        both = (next(found) if isinstance(query, str) else ask(query) for query in queries)
        return [read_hits(answer) for answer in both]

    def within(self, query: str | Codes, radius: int = 2, *, where: Filter | None = None) -> Hits:
        """Find every document within `radius` bits of a text or a code, nearest first.

        Where there are more than the service gives at once it is an error: none is left out.
        """
        hits, total = self.within_at_most(query, radius, self._limits["k"], where=where)
        if total > len(hits):
            raise InputError(
                f"There are {total:,} documents within {radius} bits, and the service gives "
                f"{len(hits):,} at most. Take a smaller radius, or within_at_most."
            )
        return hits

    def within_at_most(
        self, query: str | Codes, radius: int, limit: int, *, where: Filter | None = None
    ) -> Within:
        """Find the `limit` nearest documents within a radius, and count all of them."""
        asked = query_fields(query) | {"radius": check_count("radius", radius, 0), "where": where}
        answer = self._post("within", asked | {"limit": check_count("limit", limit, 1)})
        return Within(read_hits(answer), int(answer["total"]))

    def encode(self, texts: Sequence[str], vectors: Any = None) -> Codes:
        """Hash texts with the store's model, into codes of shape (n_docs, n_bytes).

        A model of vectors takes `vectors` instead; they are sent in one request.
        """
        check_list("texts", texts)
        if vectors is not None:
            fields = {"texts": list(texts), "vectors": [to_list(each) for each in vectors]}
            return from_hex(self._post("encode", fields)["codes"])
        sent = self._send("encode", "texts", map(to_json, texts))
        codes = [code for answer in sent for code in answer["codes"]]
        return from_hex(codes) if codes else np.zeros((0, self.info()["bits"] // 8), np.uint8)

    def get(self, id: str) -> Document | None:
        """Return a document, or None where there is none of that id."""
        hit = self.find(id)
        return None if hit is None else to_document(hit)

    def find(self, id: str) -> Hit | None:
        """Return a document with its code, as a hit of distance 0, or None where there is none."""
        try:
            return read_hit(self._connection.ask("GET", self._path_of(id)))
        except NoDocumentError:
            return None

    def documents(self, batch_size: int = 1000) -> Iterator[list[Document]]:
        """Iterate over all documents in the order of their ids. See `Store.documents`."""
        for documents, _ in self.entries(batch_size=batch_size):
            yield documents

    def entries(
        self, after: str = "", batch_size: int = 1000
    ) -> Iterator[tuple[list[Document], Codes]]:
        """Iterate over documents with their codes, in the order of ids, those above `after`.

        Batches are smaller where texts are long.
        """
        size = min(check_count("batch_size", batch_size, 1), self._limits["batch"])
        last: str | None = after
        models = set[str]()
        while last is not None:
            asked = urlencode({"after": last, "limit": size})
            answer = self._connection.ask("GET", f"{self._at}/documents?{asked}")
            models.add(answer["model"])
            if len(models) > 1:
                raise EngineError("The model of the store changed during the read. Start again.")
            hits = [read_hit(fields) for fields in answer["documents"]]
            if hits:
                yield list(map(to_document, hits)), from_hex([hit.code for hit in hits])
            last = answer["next"]

    def upsert(
        self,
        documents: Iterable[Document],
        *,
        vectors: Any = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Add documents; one whose id is there already replaces the old one.

        Parameters
        ----------
        documents : iterable of Document
            Read as a stream, and sent in batches that the service takes.
        vectors : sequence of vectors, optional
            One a document, which a model of vectors needs.
        progress : callable, optional
            Called with the number of documents written so far. Those are safe from then on.

        Returns
        -------
        int
            How many documents were written; one given twice counts twice.
        """
        n_written = 0
        if vectors is not None:
            documents = list(documents)
            if len(documents) != len(vectors):
                raise InputError(f"Got {len(documents):,} documents but {len(vectors):,} vectors.")
        each = repeat(None) if vectors is None else map(to_list, vectors)
        for answer in self._send("documents", "documents", map(write_document, documents, each)):
            n_written += answer["written"]
            if progress is not None:
                progress(n_written)
        return n_written

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents; return how many were there.

        Where an answer got lost and the request was sent again, its document was gone by then and
        is not counted.
        """
        check_list("ids", ids, "a list of ids")
        n_deleted = 0
        for id in ids:
            with suppress(NoDocumentError):
                self._connection.ask("DELETE", self._path_of(id))
                n_deleted += 1
        return n_deleted

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @cached_property
    def _limits(self) -> dict[str, int]:
        return dict(self.info()["limits"])

    def _path_of(self, id: str) -> str:
        return f"{self._at}/documents/{quote(check_id(id), safe='')}"

    def _post(self, verb: str, fields: Mapping[str, Any]) -> Any:
        return self._connection.ask("POST", f"{self._at}/{verb}", to_json(given(fields)))

    def _send(
        self, verb: str, name: str, items: Iterable[bytes], most: int = sys.maxsize, **fields: Any
    ) -> Iterator[Any]:
        """Send items in as few requests as the service's limits allow; yield each answer."""
        limits = self._limits
        for body in bodies(name, items, min(limits["batch"], most), limits["body"], given(fields)):
            yield self._connection.ask("POST", f"{self._at}/{verb}", body)
