"""Word documents, with what the standard library has: a zip file of XML, read piece by piece."""

import io
import zipfile
from typing import Any
from xml.parsers import expat

_PIECE = 2**16
_MOST_FILES = 10_000  # in the zip file: fonts, pictures, comments
_ENTRY = b"PK\x01\x02"
_WORDS = {"w:tab": "\t", "w:br": "\n", "w:cr": "\n", "w:noBreakHyphen": "-"}
_ENDS = {"w:tr": "\n", "w:tbl": "\n"}
_LEVELS = {"title": 1, **{f"heading {level}": min(level, 6) for level in range(1, 10)}}


def read_docx(data: bytes, most: int) -> tuple[str, str]:
    """Return text, with Markdown headings, and title; raise ValueError over `most` bytes of XML."""
    if data.count(_ENTRY) > _MOST_FILES:
        raise ValueError("too many files inside")
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        there = set(file.namelist())
        parsed: dict[str, _Part] = {}
        for name in ("word/styles.xml", "docProps/core.xml", "word/document.xml"):
            levels = parsed["word/styles.xml"].levels if parsed else {}
            parsed[name] = part = _Part(levels, most)
            if name in there or name == "word/document.xml":
                with file.open(name) as stream:
                    part.parse(stream)
    body = parsed["word/document.xml"]
    return "".join(body.out).strip(), parsed["docProps/core.xml"].title or body.title


class _Part:
    """One XML file: the levels of styles, the title, or the text."""

    def __init__(self, levels: dict[str, int], most: int) -> None:
        self.levels = dict(levels)
        self.most = most
        self.out: list[str] = []
        self.title = ""
        self._paragraph: list[str] = []
        self._level = self._tables = self._hidden = 0
        self._style = ""
        self._is_text = self._is_title = False

    def parse(self, stream: Any) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._words
        parser.StartDoctypeDeclHandler = self._refuse  # entities that grow a thousandfold
        while piece := stream.read(_PIECE):
            self.most -= len(piece)
            if self.most < 0:
                raise ValueError("too large")
            parser.Parse(piece)
        parser.Parse(b"", True)

    def _refuse(self, *_: object) -> None:
        raise ValueError("it declares entities")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        value = attributes.get("w:val", "")
        if tag == "w:style":
            self._style = attributes.get("w:styleId", "")
        elif tag == "w:name" and value.lower() in _LEVELS:
            self.levels[self._style] = _LEVELS[value.lower()]
        elif tag == "w:pStyle":
            self._level = self.levels.get(value, 0)
        elif tag in _WORDS and self._paragraph:  # a tab in the settings of a paragraph is none
            self._paragraph.append(_WORDS[tag])
        self._tables += tag == "w:tbl"
        self._hidden += tag == "mc:Fallback"  # the same again, for old programs
        self._is_text, self._is_title = tag == "w:t", tag == "dc:title"

    def _words(self, words: str) -> None:
        if self._is_title:
            self.title += words
        elif self._is_text and not self._hidden:
            self._paragraph.append(words)

    def _end(self, tag: str) -> None:
        self._is_text = self._is_title = False
        self._tables -= tag == "w:tbl"
        self._hidden -= tag == "mc:Fallback"
        if tag == "w:p":
            self._end_paragraph("".join(self._paragraph))
            self._paragraph, self._level = [], 0
        self.out.append(_ENDS.get(tag, ""))

    def _end_paragraph(self, words: str) -> None:
        if self._tables:
            self.out.append(f"{words} ")
        elif self._level and words.strip():
            words = " ".join(words.split())
            self.title = self.title or words
            self.out.append(f"\n{'#' * self._level} {words}\n\n")
        else:
            self.out.append(f"{words}\n\n" if words.strip() else "")
