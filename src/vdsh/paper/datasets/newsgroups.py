"""20 Newsgroups (Ken Lang), the "bydate" version distributed by Jason Rennie: 18,846 posts."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vdsh.documents import Document
from vdsh.paper.datasets import formats
from vdsh.paper.datasets.base import Corpus, Source, as_corpus
from vdsh.paper.datasets.download import File

_KEPT = ("from:", "subject:")
_NAME = re.compile(r"20news-bydate-(train|test)/([^/]+)/(\d+)$")
# Address and checksum are those of scikit-learn 1.9 (datasets/_twenty_newsgroups.py).
_ARCHIVE = File(
    "20news-bydate.tar.gz",
    (
        "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        "https://ndownloader.figshare.com/files/5975967",
    ),
    "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    "14 MB",
)


def read(folder: Path) -> Corpus:
    """Read the posts with the From and Subject lines of their headers, as the paper has them."""
    posts = formats.read_stories(folder)
    posts = [replace(post, text=keep_headers(post.text)) for post in posts]
    return as_corpus(
        posts, f"20 Newsgroups bydate, {len(posts):,} posts, headers From and Subject kept"
    )


def keep_headers(text: str) -> str:
    r"""Drop all header lines but From and Subject; the header ends at the first blank line.

    >>> keep_headers("From: a@b\nLines: 3\nSubject: hi\n\nLines: in the body")
    'From: a@b\nSubject: hi\n\nLines: in the body'
    """
    header, blank, body = text.partition("\n\n")
    lines = [line for line in header.split("\n") if line.lower().startswith(_KEPT)]
    return "\n".join(lines) + blank + body


def parse(folder: Path) -> None:
    """Read the tar archive: one post a file, `20news-bydate-train/GROUP/NUMBER`."""
    posts = sorted(_posts(folder / _ARCHIVE.name), key=_place)
    formats.write_stories(folder, posts)


def _posts(archive: Path) -> Iterator[Document]:
    for name, content in formats.tar_files(archive):
        match = _NAME.search(name)
        if match:
            split, group, number = match.groups()
            text = formats.clean(content.decode("latin-1"))
            yield Document(f"{group}/{number}", text, (group,), {"split": split})


def _place(post: Document) -> tuple[bool, str, int]:
    group, _, number = post.id.partition("/")
    return post.metadata["split"] != "train", group, int(number)


SOURCE = Source(
    name="20newsgroups",
    title="20 Newsgroups, bydate version",
    home="http://qwone.com/~jason/20Newsgroups/",
    licence="none stated; Usenet posts, customarily used for research",
    citation="Ken Lang, NewsWeeder: Learning to Filter Netnews, ICML 1995",
    used="From and Subject of the headers are kept, as in the 18,828 posts of the paper's version",
    documents=18_846,
    labels=20,
    read=read,
    folder="20newsgroups",
    layout=(formats.DOCUMENTS,),
    files=(_ARCHIVE,),
    parse=parse,
)
