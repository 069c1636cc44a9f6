"""What a store answers with, and how people read that."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from shutil import get_terminal_size
from typing import Any, NamedTuple, TypeVar

from vdsh.documents import Document
from vdsh.retrieval import Ranking
from vdsh.store.rows import searched_head
from vdsh.words.passages import DOTS, LENGTH, Fragment, n_cells, one_line, show_passage

_MOST_SHOWN = 8  # words in a sentence

WIDTH = 100  # where there is no terminal
_LEAST = 40  # places for a passage; where there are fewer, it has a line of its own
_GAP = "  "
RELATED = "Related, without these words:"
PARTS = "With parts of it only:"


Page = TypeVar("Page", list[tuple[Document, bytes]], list[tuple[str, bytes]])


def pages(read: Callable[[str], Page], last: str) -> Iterator[Page]:
    """Read page after page, each from where the one before ended, until one is empty."""
    while page := read(last):
        yield page
        last = last_id(page)


def last_id(page: Sequence[tuple[Document, bytes]] | Sequence[tuple[str, bytes]]) -> str:
    """Return the last id of a page."""
    document_or_id = page[-1][0]
    return document_or_id.id if isinstance(document_or_id, Document) else document_or_id


class Hit(NamedTuple):
    """One document that was found.

    Attributes
    ----------
    id : str
    distance : int
        Bits in which its code differs from the query's; those of the topic alone, where codes have
        a part of vectors and a text that is ranked by relevance came without one.
    text : str
    labels : tuple of str, or None
    metadata : dict
    expected : float or None
        The expected distance, where hits were ranked by it.
    code : str
        Its code in hex.
    score : float or None
        By words and code together, from 0 to 1, where hits were ranked so.
    words : tuple of str
        Forms of the query's words in its best passage, or in its title or name, where hits were
        ranked so: a name such as `foo.bar` first, then the word that the fewest documents have.
    section : tuple of (int, int)
        Where the best passage of a long text begins and ends, in characters, or that with the
        phrase that was asked for; (0, 0) for others.
    related : bool
        Whether it lacks what was asked for: it has no word of the query, or only parts of the name
        or the phrase that the query is. Where a vector was looked for, such a hit is related only
        if its score is less than half the best.
    copies : int
        How many more hits have the very same text, where people are shown only the first.
    """

    id: str
    distance: int
    text: str
    labels: tuple[str, ...] | None
    metadata: dict[str, Any]
    expected: float | None = None
    code: str = ""
    score: float | None = None
    words: tuple[str, ...] = ()
    section: tuple[int, int] = (0, 0)
    related: bool = False
    copies: int = 0

    def __repr__(self) -> str:
        score = "" if self.score is None else f"score={self.score:.3f}, "
        return (
            f"Hit(id={self.id!r}, {score}distance={self.distance}, labels={self.labels!r}, "
            f"passage={self.passage(80)!r})"
        )

    def passage(self, width: int = LENGTH, words: Collection[str] | None = None) -> str:
        """Return the stretch of the text that has the most words of the query, in one line.

        Parameters
        ----------
        width : int, default=240
            Characters at most.
        words : collection of str, optional
            Words to look for, by default `words`; the text's beginning where there are none.
        """
        return "".join(piece.text for piece in self.pieces(width, words))

    def pieces(self, width: int = LENGTH, words: Collection[str] | None = None) -> list[Fragment]:
        """Return the passage in pieces, each with whether it is a word of the query."""
        ranked = words is None
        wanted, (start, stop) = self.words if words is None else words, self.section
        if not stop:
            return show_passage(self.text, wanted, width, ranked=ranked)
        shown = show_passage(self.text[start:stop], wanted, width, ranked=ranked)
        before = [Fragment(DOTS)] if start and shown[:1] != [Fragment(DOTS)] else []
        return [*before, *shown]

    @property
    def place(self) -> str:
        """Where in its text the best passage is: the headings above it, or its page."""
        if "\f" not in self.text and not self.text.startswith("#") and "\n#" not in self.text:
            return ""  # at once, as for most texts
        found = [text for text, marked in self.pieces() if marked]
        start, stop = self.section
        at = self.text.find(found[0], start, stop or None) if found else start
        from vdsh.documents.split import place_of

        return place_of(self.text, max(at, start))

    def as_fields(self) -> dict[str, Any]:
        """Give the JSON object that command line and server share."""
        fields = self._asdict()
        if self.expected is None:
            del fields["expected"]
        if self.score is None:
            del fields["score"], fields["words"], fields["related"]
        if not self.section[1]:
            del fields["section"]
        if not self.copies:
            del fields["copies"]
        if place := self.place:
            fields["place"] = place
        return fields


def stored_hit(document: Document, code: bytes) -> Hit:
    """Return a stored document as a hit of distance 0."""
    return Hit(
        id=document.id,
        distance=0,
        text=document.text,
        labels=document.labels,
        metadata=document.metadata,
        code=code.hex(),
    )


def ranked_hits(
    ranking: Ranking,
    documents: Sequence[tuple[Document, bytes]],
    words: Sequence[Sequence[str]] | None = None,
) -> list[Hit]:
    """Return the documents of a ranking as hits, with what the ranking says of each.

    `words`: of each document those that are forms of the query's.
    """
    hits = []
    for i, (document, code) in enumerate(documents):
        hits.append(
            Hit(
                id=document.id,
                distance=int(ranking.distances[i]),
                text=document.text,
                labels=document.labels,
                metadata=document.metadata,
                expected=None if ranking.expected is None else float(ranking.expected[i]),
                code=code.hex(),
                score=None if ranking.scores is None else float(ranking.scores[i]),
                words=() if words is None else tuple(words[i]),
                section=section_of(ranking, i, document),
                related=False if ranking.related is None else bool(ranking.related[i]),
            )
        )
    return hits


def section_of(ranking: Ranking, i: int, document: Document) -> tuple[int, int]:
    """Say where in its text the best passage of a long document is; (0, 0) for others."""
    start, stop = (0, 0) if ranking.spans is None else ranking.spans[i].tolist()
    if not stop:
        return 0, 0
    before_text = len(searched_head(document.id, document.text, document.metadata))
    return max(0, start - before_text), max(0, stop - before_text)


def to_document(hit: Hit) -> Document:
    """Take the document out of a hit."""
    return Document(hit.id, hit.text, hit.labels, hit.metadata)


_UNQUOTED = "No document has the phrase as it stands; these have words of the query."


class Hits(list[Hit]):
    """What was found, best first, and which words of the query could not help.

    Parameters
    ----------
    hits : iterable of Hit
    unknown : iterable of str
        Words of the query that have no effect: the model does not know them, and where words are
        looked for too, no document has them.
    empty : bool
        Whether the query is a text without any word that counts; such a text finds nothing.
    by_words : bool
        Whether words were looked for too.
    unquoted : bool
        Whether no document has what is in quotes, so that all words were looked for.
    meant : mapping of str to str, optional
        Words that no document has, with those that were looked for instead.
    absent : iterable of str
        Names such as `foo.bar` that no document has.

    Attributes
    ----------
    unknown : list of str
    meant : dict of str to str
    warning : str or None
        A sentence for the person who asked; None where every word was known.
    """

    def __init__(
        self,
        hits: Iterable[Hit] = (),
        unknown: Iterable[str] = (),
        *,
        empty: bool = False,
        by_words: bool = False,
        unquoted: bool = False,
        meant: Mapping[str, str] | None = None,
        absent: Iterable[str] = (),
    ) -> None:
        super().__init__(hits)
        self.meant = dict(meant or {})
        self.unknown = [word for word in unknown if word not in self.meant]
        absent = list(absent)
        with_parts = any(hit.related and hit.words for hit in self)
        not_said = [word for word in self.unknown if not _is_part(word, absent)]
        sentences = [
            _UNQUOTED if unquoted else None,
            _describe_meant(self.meant),
            _describe_absent(absent, with_parts=with_parts),
            _describe_unknown(not_said, empty=empty and not absent, by_words=by_words),
        ]
        self.warning = " ".join(filter(None, sentences)) or None

    def __repr__(self) -> str:
        width = get_terminal_size((WIDTH, 0)).columns
        lines = ["".join(piece.text for piece in line) for line in table(self, width)]
        return "\n".join([*lines, *filter(None, [self.warning])]) or "<no hits>"

    def about_query(self) -> dict[str, Any]:
        """Give the JSON fields about unknown words; none where every word was known."""
        if self.warning is None:
            return {}
        meant = {"meant": self.meant} if self.meant else {}
        return {"unknown": self.unknown, **meant, "warning": self.warning}


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


def _describe_meant(meant: Mapping[str, str]) -> str:
    """Say which words were looked for instead of others.

    >>> _describe_meant({"serach": "search"})
    "Did you mean 'search'? No document has 'serach'."
    """
    if not meant:
        return ""
    words, typed = (", ".join(f"'{word}'" for word in some) for some in (meant.values(), meant))
    return f"Did you mean {words}? No document has {typed}."


def _is_part(word: str, names: Iterable[str]) -> bool:
    return any(word in name.lower() for name in names)


def _describe_absent(names: Sequence[str], *, with_parts: bool) -> str:
    """Say which names no document has.

    >>> _describe_absent(["E_TIMEOUT"], with_parts=True)
    "No document has 'E_TIMEOUT'. These have parts of it."
    """
    if not names:
        return ""
    listed = ", ".join(f"'{name}'" for name in names[:_MOST_SHOWN])
    parts = f" These have parts of {'it' if len(names) == 1 else 'them'}." if with_parts else ""
    return f"No document has {listed}.{parts}"


def _describe_unknown(words: list[str], *, empty: bool, by_words: bool = False) -> str | None:
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
    if empty and by_words:
        return f"No document has a word of the text, so nothing is found: {shown}."
    if empty:
        return f"No word of the text is known to the model, so nothing is found: {shown}."
    if by_words:
        return f"In no document, and not known to the model: {shown}."
    return f"Not known to the model, so without effect: {shown}."


def table(
    hits: Sequence[Hit], width: int = WIDTH, words: Collection[str] | None = None
) -> list[list[Fragment]]:
    """Lay hits out in lines: score or distance, id, labels where there are some, best passage.

    Those that lack what was asked for come last, below a line that says how they are related.
    `width`: places in a line. `words`: what to mark; by default the words of the query that each
    hit is known to have.
    """
    starts = _starts(hits, 2 * width // 5, width // 6)
    room = width - max(map(n_cells, starts), default=0)
    if room < _LEAST or any(n_cells(hit.id) > 2 * width // 5 for hit in hits):
        starts = _starts(hits, width * 2 // 3, width // 4)  # paths of files, whole if possible
        indent = max((len(_number(hit)) for hit in hits), default=0) + len(_GAP)
        starts = [f"{start.rstrip()}\n{' ' * indent}" for start in starts]
        room = max(_LEAST, width - indent)
    ends = [f" ({hit.copies:,} more like it)" if hit.copies else "" for hit in hits]
    lines = [
        [Fragment(start), *hit.pieces(room - len(end), words), *([Fragment(end)] if end else [])]
        for hit, start, end in zip(hits, starts, ends, strict=True)
    ]
    for kind in (RELATED, PARTS):
        at = next((i for i, hit in enumerate(hits) if relation(hit) == kind), len(hits))
        lines[at:at] = [[Fragment(kind)]] if at < len(hits) else []
    return lines


def relation(hit: Hit) -> str:
    """Say how a hit is related that lacks what was asked for; "" for those that have it."""
    if not hit.related:
        return ""
    return PARTS if hit.words else RELATED


def row(hit: Hit, words: Collection[str] | None = None) -> tuple[str, str, str, str]:
    """Give number, id, labels and passage of a hit: the cells of a line, none of them cut."""
    copies = f" ({hit.copies:,} more like it)" if hit.copies else ""
    return _number(hit), hit.id, ", ".join(hit.labels or ()), hit.passage(words=words) + copies


def _starts(hits: Sequence[Hit], id_width: int, label_width: int) -> list[str]:
    """Lay out the columns before the passage, each with a gap after it."""
    columns = [
        _column([_number(hit) for hit in hits], 8, right=True),
        _column([hit.id for hit in hits], id_width),
        _column([", ".join(hit.labels or ()) for hit in hits], label_width),
    ]
    filled = [column for column in columns if any(column)]
    return ["".join(cell + _GAP for cell in row) for row in zip(*filled, strict=True)]


def _number(hit: Hit) -> str:
    if hit.score is not None:
        return f"{hit.score:.3f}"
    return str(hit.distance) if hit.expected is None else f"{hit.expected:.1f}"


def _column(values: Sequence[str], most: int, *, right: bool = False) -> list[str]:
    """Bring values to one width; what is too long loses its middle, since both ends tell more."""
    cells = [_cut(one_line(value), max(8, most)) for value in values]
    width = max(map(n_cells, cells), default=0)
    spaces = [" " * (width - n_cells(cell)) for cell in cells]
    return [f"{b}{a}" if right else f"{a}{b}" for a, b in zip(cells, spaces, strict=True)]


def _cut(text: str, width: int) -> str:
    if n_cells(text) <= width:
        return text
    kept = (width - len(DOTS)) * len(text) // n_cells(text)
    return f"{text[: kept // 3]}{DOTS}{text[len(text) - kept + kept // 3 :]}"
