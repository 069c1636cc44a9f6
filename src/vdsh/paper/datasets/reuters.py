"""Reuters-21578 (David D. Lewis), ApteMod: 10,788 newswire stories in 90 categories."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vdsh.documents import Document
from vdsh.paper.datasets import formats
from vdsh.paper.datasets.base import Corpus, Source, as_corpus
from vdsh.paper.datasets.download import File

# The addresses hold the same archive; the checksum is that of scikit-learn's example
# plot_out_of_core_classification.py, the size that of David D. Lewis's page.
_ARCHIVE = File(
    "reuters21578.tar.gz",
    (
        "https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/"
        "reuters21578.tar.gz",
        "http://kdd.ics.uci.edu/databases/reuters21578/reuters21578.tar.gz",
        "http://www.daviddlewis.com/resources/testcollections/reuters21578/reuters21578.tar.gz",
    ),
    "3bae43c9b14e387f76a61b6d82bf98a4fb5d3ef99ef7e7075ff2ccbcf59f9d30",
    "8.2 MB",
)
_PARTS = {"TRAIN": "train", "TEST": "test"}
# This story is in ModApte but, as its counts show, not in ApteMod.
_LEFT_OUT = "1199"
_RECORD = re.compile(r"<REUTERS\b(.*?)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="(.*?)"')
_ENTITY = re.compile(r"&(lt|gt|amp|#\d+);")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&"}
_CLOSING = re.compile(r"(?:\A|\n)[ \t]*reuter\s*\Z", re.IGNORECASE)


def read(folder: Path) -> Corpus:
    """Read all 90 categories."""
    stories = formats.read_stories(folder)
    labels = {label for story in stories for label in story.labels or ()}
    note = f"Reuters-21578 ApteMod, {len(labels)} categories, {len(stories):,} stories"
    return as_corpus(stories, note)


def read_20(folder: Path) -> Corpus:
    """Read the 20 most frequent categories; stories with none of them are dropped."""
    stories = most_frequent(formats.read_stories(folder), 20)
    note = f"Reuters-21578 ApteMod, 20 most frequent categories, {len(stories):,} stories"
    return as_corpus(stories, note)


def most_frequent(documents: list[Document], n_labels: int) -> list[Document]:
    """Keep the most frequent labels and the documents that have one of them."""
    counts = Counter(label for document in documents for label in document.labels or ())
    return _keep(documents, {label for label, _ in counts.most_common(n_labels)})


def parse(folder: Path) -> None:
    """Read the 22 SGML files in the archive and take ApteMod out of them.

    That is the ModApte split (TOPICS="YES", LEWISSPLIT TRAIN or TEST), of which the categories
    with at least one training and one test story are kept, and the stories that have one.
    """
    texts = (
        content.decode("latin-1")
        for name, content in sorted(formats.tar_files(folder / _ARCHIVE.name))
        if name.endswith(".sgm")
    )
    stories = [story for text in texts for story in parse_sgml(text)]
    seen = {part: _labels(stories, part) for part in _PARTS.values()}
    formats.write_stories(folder, _keep(stories, seen["train"] & seen["test"]))


def parse_sgml(text: str) -> Iterator[Document]:
    """Read the stories of the ModApte split out of one SGML file."""
    for head, body in _RECORD.findall(text):
        facts = dict(_ATTRIBUTE.findall(head))
        part = _PARTS.get(facts.get("LEWISSPLIT", ""))
        if part and facts.get("TOPICS") == "YES" and facts["NEWID"] != _LEFT_OUT:
            topics = sorted(set(re.findall(r"<D>(.*?)</D>", _inside(body, "TOPICS") or "")))
            key = f"{'training' if part == 'train' else 'test'}/{facts['NEWID']}"
            yield Document(key, _text(body), tuple(topics), {"split": part})


def _text(record: str) -> str:
    """Join title and body, without the closing line "Reuter"."""
    text = _inside(record, "TEXT") or ""
    title = _inside(text, "TITLE")
    body = _inside(text, "BODY")
    # Stories of TYPE="UNPROC" have neither.
    if title is None and body is None:
        body = text
    body = _CLOSING.sub("", _decode(body or "").rstrip())
    return f"{_decode(title or '')}\n{body}".strip()


def _inside(text: str, tag: str) -> str | None:
    match = re.search(rf"<{tag}\b[^>]*>(.*?)</{tag}>", text, re.DOTALL)
    return match[1] if match else None


def _decode(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        name = match[1]
        return chr(int(name[1:])) if name.startswith("#") else _ENTITIES[name]

    return formats.clean(_ENTITY.sub(character, text))


def _labels(stories: list[Document], part: str) -> set[str]:
    chosen = (story for story in stories if story.metadata["split"] == part)
    return {label for story in chosen for label in story.labels or ()}


def _keep(documents: list[Document], labels: set[str]) -> list[Document]:
    kept = []
    for document in documents:
        own = tuple(label for label in document.labels or () if label in labels)
        if own:
            kept.append(replace(document, labels=own))
    return kept


SOURCE = Source(
    name="reuters",
    title="Reuters-21578, Distribution 1.0, ApteMod",
    home="http://www.daviddlewis.com/resources/testcollections/reuters21578/",
    licence="copyright Reuters Ltd. and Carnegie Group; free for research only",
    citation="Reuters-21578, Distribution 1.0 (David D. Lewis)",
    used="title and body; the 90 categories with a training and a test story",
    documents=10_788,
    labels=90,
    read=read,
    folder="reuters",
    layout=(formats.DOCUMENTS,),
    files=(_ARCHIVE,),
    parse=parse,
)
SOURCE_20 = replace(
    SOURCE,
    name="reuters20",
    title="Reuters-21578, Distribution 1.0, ApteMod, 20 most frequent categories",
    used="title and body; the 20 most frequent categories and the stories that have one of them",
    documents=9_855,
    labels=20,
    read=read_20,
)
