"""Inputs that would hang a careless program: pieces repeated, nested or mixed, by a seeded Random.

A target makes an input and uses it as the program does. `measure` says how long that took.
"""

import io
import json
import re
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import fuzz_targets
import mutants
from vdsh.documents import Document, read_documents
from vdsh.documents import ignore as ignore_file
from vdsh.documents.ignore import Patterns
from vdsh.documents.readers import read_file
from vdsh.documents.split import place_of, split_text
from vdsh.errors import VdshError
from vdsh.store import open_store
from vdsh.text.languages import find_language
from vdsh.text.tokenizer import find_spans, find_tokens, tokenize
from vdsh.words.counting import find_parts

ALLOWED = 0.1  # seconds of a processor for each `PIECE` bytes of input, and for any shorter one
PIECE = 10_000
TRIES = 4  # of an input that took longer: the machine may have been busy

TEXT = ["word ", "End. ", ".", "!", "? ", "…", "。", "」", '"', "'", "\u2019", "(", ")", "]", " "]
TEXT += ["\n", "\r\n", "\t", "\f", "\x00", "\xa0", "\u3000", "\n\n", "\n# ", "\n## H\n", "#", "-"]
TEXT += [
    "=",
    "a",
    "A",
    "aB",
    "1",
    "_",
    "::",
    "a.b",
    "c++ ",
    "a'",
    "'s ",
    "漢",
    "ก",
    "็",
    "한",
    "ᄀ",
    "ᅡ",
]
TEXT += [
    "\u0301",
    "\u0316",
    "\u0301\u0316",
    "é",
    "İ",
    "ß",
    "😀",
    "\ufe0f",
    "\u200d",
    "क",
    "ि",
    "\ufffd",
]
HTML = ["<", ">", "</", "<!--", "-->", "<![CDATA[", "<!", "<?", "<a ", "<a href='", "</a>", "<li>"]
HTML += [
    "<li",
    "<li><a>x</a>",
    "<pre>",
    "</pre ",
    "<script",
    "</script ",
    "<nav>",
    "<main",
    "&nbsp;",
]
HTML += [
    "<p role=",
    "main",
    "<h1>",
    "</h1",
    "<h2",
    "<title",
    "</title ",
    "&",
    "&#",
    "&#1",
    "&#x",
    "&a",
]
HTML += ["9", "<td>", "<br", "<b>", "<svg>"]
MARKDOWN = [
    "---\n",
    "title:",
    "# ",
    "# #",
    "=",
    "===\n",
    "- ",
    "```\n",
    "| ",
    "[",
    "]",
    "(",
    "*",
    "`",
]
XML = [
    "<w:p>",
    "</w:p>",
    "<w:p/>",
    "<w:r>",
    "</w:r>",
    "<w:t>",
    "<w:t ",
    "</w:t>",
    "<w:tab/>",
    "x",
    " ",
]
XML += [
    "<w:tbl>",
    "</w:tbl>",
    "<w:tr>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "&amp;",
    "&#65;",
    "&x;",
    "=",
]
XML += ['a="', "<?x ", "?>", "<!DOCTYPE x [", '<w:pStyle w:val="', '"/>']
JSON = [
    "[",
    "]",
    "{",
    "}",
    '"',
    '"a":',
    ",",
    "\\",
    "\\ud800",
    "\\u0041",
    "1",
    "1e9",
    "-",
    "null",
    '{"a":',
]
TABLE = [",", ";", "\t", '"', '""', "\n", "text", "id,text\n", "a", "|", "\r"]
GLOBS = [
    "*",
    "**",
    "/",
    "**/",
    "a",
    "?",
    "[",
    "]",
    "[!",
    "[a-z]",
    "\\",
    "!",
    "#",
    " ",
    "b",
    "a*",
    "*a*",
]
GLOBS += ["\n", "\\ ", "[]", "[^", "-", "a/", "/**/a", ".", "*.py\n", "a/b\n"]
QUERY = [
    '"',
    "-",
    "-a",
    ' "',
    "a",
    " ",
    "'",
    "+",
    "#",
    ".",
    "the ",
    "moon ",
    "orbit",
    "mon",
    "\n",
    "*",
    "\\",
]
PATHS = ["a", "/", "a/", "b", "[", "*", "aB.py", "."]

MARKUP_HEAD = f'<w:document xmlns:w="{fuzz_targets.WORD_XML}"><w:body>'


def repeated(rng: Random, pieces: list[str], length: int) -> str:
    """Make a text of few pieces, each of them repeated, now and then with one more between."""
    parts: list[str] = []
    left = length
    while left > 0:
        pattern = "".join(rng.choices(pieces, k=rng.choice((1, 1, 1, 2, 2, 3, 5))))
        n_times = max(1, rng.choice((1, 1, left // 8, left // 2, left)) // len(pattern))
        parts.append(pattern * n_times)
        left -= len(pattern) * n_times
    return "".join(parts)


def a_length(rng: Random) -> int:
    """Draw the length of an input; most are as long as what is allowed for any."""
    return rng.choice((200, 2000, 5000, PIECE, PIECE, 2 * PIECE))


class Readers:
    """A file of some kind: a page, a note, a notebook, a Word document, a PDF, a table."""

    KINDS = {
        "html": HTML + TEXT,
        "md": MARKDOWN + TEXT,
        "txt": TEXT,
        "ipynb": JSON,
        "jsonl": JSON,
        "csv": TABLE,
        "docx": XML,
        "pdf": [],
    }

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pdf = fuzz_targets.make_pdf(fuzz_targets.TEXTS[:2])

    def make(self, rng: Random) -> tuple[str, bytes]:
        """Return the ending of a file and what is in it."""
        kind = rng.choice(("html", "html", "md", "docx", "docx", *self.KINDS))
        if kind == "pdf":
            return kind, mutants.of_bytes(self.pdf, rng)
        text = repeated(rng, self.KINDS[kind], a_length(rng))
        if kind == "docx" and rng.random() < 0.8:
            text = MARKUP_HEAD + text
        if kind == "ipynb" and rng.random() < 0.5:
            text = json.dumps({"cells": [{"source": text}]})
        return kind, text.encode(errors="replace")

    def use(self, made: tuple[str, bytes], rng: Random) -> int:
        """Read a file; return the size of its contents."""
        kind, data = made
        path = self.folder / f"x.{kind}"
        path.write_bytes(_zipped(data) if kind == "docx" else data)
        if kind in ("csv", "jsonl"):
            for _ in read_documents(path):
                pass
        else:
            read_file(path)
        return len(data)


class Texts:
    """A text, used by a function."""

    def __init__(self, use: Callable[[str, Random], Any], pieces: list[str]) -> None:
        self._use = use
        self._pieces = pieces

    def make(self, rng: Random) -> str:
        """Return a text."""
        return repeated(rng, self._pieces, a_length(rng))

    def use(self, text: str, rng: Random) -> int:
        """Use a text; return how many bytes it has."""
        self._use(text, rng)
        return len(text.encode(errors="replace"))


class Queries(Texts):
    """What somebody asks a small store with words and codes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(self._search, QUERY + TEXT)
        texts = [*fuzz_targets.TEXTS, "a long text about the moon. " * 200, "The mons of Mars"]
        self.store = open_store(folder / "store")
        self.store.upsert([Document(f"d{i}", text) for i, text in enumerate(texts)])

    def _search(self, text: str, rng: Random) -> None:
        for hit in self.store.search(text, k=3):
            assert hit.id


def split(text: str, rng: Random) -> None:
    """Split a text, and name a place in it."""
    spans = split_text(text)
    assert not spans or spans[-1][1] == len(text), "passages that lose the end"
    place_of(text, rng.randrange(len(text) + 1))


def find_words(text: str, rng: Random) -> None:
    """Find the words of a text in all the ways that there are."""
    tokenize(text)
    find_spans(text)
    find_tokens([text])
    find_parts(text)
    find_language([text])


def ignore(text: str, rng: Random) -> None:
    """Read patterns, and ask whether they fit a few paths, as a walk through folders does."""
    patterns = Patterns(text.splitlines())
    for _ in range(5):
        patterns.leave_out(repeated(rng, PATHS, 60).strip("/") or "a")


def targets(folder: Path) -> dict[str, Any]:
    """Make every target; `folder` is for files."""
    return {
        "readers": Readers(folder),
        "splitter": Texts(split, TEXT),
        "tokenizer": Texts(find_words, TEXT),
        "ignore files": Texts(ignore, GLOBS),
        "queries": Queries(folder),
    }


class Measured(NamedTuple):
    """What an input cost."""

    seconds: float  # the least of some tries, where the first took too long
    size: int  # bytes
    error: str  # what was raised that is no `VdshError`

    @property
    def share(self) -> float:
        """Give the share of the time that is allowed."""
        return self.seconds / (ALLOWED * max(1.0, self.size / PIECE))


def measure(name: str, target: Any, case: int) -> Measured:
    """Make an input and use it; the clock is that of this process, or the wall's for a PDF."""
    best = Measured(float("inf"), 0, "")
    for _ in range(TRIES):
        re.purge()
        ignore_file._matcher.cache_clear()
        rng = Random(f"{name} {case}")
        made = target.make(rng)
        clock = time.perf_counter if made[0] == "pdf" else time.process_time
        start = clock()
        size, error = _size_of(made), ""
        try:
            size = target.use(made, rng)
        except VdshError:
            pass
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"[:200]
        best = min(best, Measured(clock() - start, size, error))
        if best.share <= 1:
            break
    return best


def _size_of(made: Any) -> int:
    return len(made[1]) if isinstance(made, tuple) else len(made.encode(errors="replace"))


def _zipped(document: bytes) -> bytes:
    with zipfile.ZipFile(out := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("word/document.xml", document)
    return out.getvalue()
