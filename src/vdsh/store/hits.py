"""What a store answers with."""

from collections.abc import Iterable
from typing import Any, NamedTuple

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
    score : float or None
        By words and code together, from 0 to 1.25, where hits were ranked so.
    words : tuple of str
        The query's words that the document has, where hits were ranked so.
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

    def as_fields(self) -> dict[str, Any]:
        """Give the JSON object that command line and server share."""
        fields = self._asdict()
        if self.expected is None:
            del fields["expected"]
        if self.score is None:
            del fields["score"], fields["words"]
        return fields


class Hits(list[Hit]):
    """What was found, nearest first, and which words of the query could not help.

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

    Attributes
    ----------
    unknown : list of str
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
    ) -> None:
        super().__init__(hits)
        self.unknown = list(unknown)
        self.warning = _describe_unknown(self.unknown, empty=empty, by_words=by_words)

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
