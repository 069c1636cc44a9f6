"""20 Newsgroups (Ken Lang), the "bydate" version distributed by Jason Rennie: 18,846 posts."""

from dataclasses import replace
from pathlib import Path

from vdsh.datasets.base import Dataset, random_split, read_corpus

_KEPT = ("from:", "subject:")


def load(root: Path | None, seed: int) -> Dataset:
    """Load the posts with the From and Subject lines of their headers, as the paper has them."""
    posts = read_corpus(root, "20newsgroups")
    posts = [replace(post, text=keep_headers(post.text)) for post in posts]
    note = "20 Newsgroups bydate, 18,846 posts, headers From and Subject kept"
    return random_split("20newsgroups", posts, seed, note)


def keep_headers(text: str) -> str:
    r"""Drop all header lines but From and Subject; the header ends at the first blank line.

    >>> keep_headers("From: a@b\nLines: 3\nSubject: hi\n\nLines: in the body")
    'From: a@b\nSubject: hi\n\nLines: in the body'
    """
    header, blank, body = text.partition("\n\n")
    lines = [line for line in header.split("\n") if line.lower().startswith(_KEPT)]
    return "\n".join(lines) + blank + body
