"""Word documents: a zip file of XML, of which three parts matter.

The standard library's expat reads the XML in one pass and builds no tree. A document type
declaration is refused: Word writes none, and without one there are no entities that could grow.
"""

import io
import zipfile
from xml.parsers import expat

from vdsh.documents.unreadable import TOO_LARGE, UnreadableError

_ENTRY = b"PK\x01\x02"  # begins each file's entry in the directory of a zip file
_MOST_FILES = 10_000  # in the zip file: fonts, pictures, comments
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those of the standard; others have no limit
# XML of real documents is packed 10 to 50 times. Apache POI refuses 100 times and more.
_MOST_TIMES = 200
_ALWAYS_UNPACKED = 10**6  # bytes, however well they are packed
_MOST_ELEMENTS = 5_000_000  # a book of 1,000 pages has half a million
_DEEPEST = 500  # elements inside each other; tables in tables in text boxes have 50
_WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_WORD_TAGS = "p pStyle r t tab br cr noBreakHyphen tbl tr style name".split()
_TAGS = {f"{space} {tag}": tag for space in _WORD for tag in _WORD_TAGS}
_TAGS["http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"] = "Fallback"
_TAGS["http://purl.org/dc/elements/1.1/ title"] = "title"
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_DEEPEST_HEADING = 6  # of Markdown


def read_docx(data: bytes, limit: int) -> tuple[str, str]:
    """Return text, with Markdown headings, and title; no part may have more than `limit` bytes.

    Raises `UnreadableError` for what only a hostile file has, and anything for a damaged one.
    """
    if data.count(_ENTRY) > _MOST_FILES:
        raise UnreadableError(f"{TOO_LARGE} {_MOST_FILES:,} files inside")
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        body = _Body(_heading_levels(_part(file, "word/styles.xml", limit)))
        body.read(_part(file, "word/document.xml", limit))
        title = _title(_part(file, "docProps/core.xml", limit))
    text = "".join(body.out).strip()
    return text, title or text.partition("\n")[0].lstrip("# ")


def _part(file: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Unpack a part; it is empty where the file has none and needs none."""
    if name not in file.namelist() and "document" not in name:
        return b""
    about = file.getinfo(name)
    if about.compress_type not in _METHODS:
        raise UnreadableError("is packed in a way that Word does not use")
    most_unpacked = max(_ALWAYS_UNPACKED, _MOST_TIMES * about.compress_size)
    with file.open(name) as stream:
        data = stream.read(min(limit, most_unpacked) + 1)
    if len(data) > limit:
        raise UnreadableError(f"{TOO_LARGE} {limit:,} bytes inside")
    if len(data) > most_unpacked:
        raise UnreadableError(f"is packed more than {_MOST_TIMES} times, as only zip bombs are")
    return data


class _Reader:
    """Follows the elements of some XML: `open_tags` are those that we know, or empty."""

    def __init__(self) -> None:
        self.open_tags: list[str] = []
        self.n_elements = 0

    def read(self, data: bytes) -> None:
        """Read a part; an empty one has no elements."""
        if not data:
            return
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.characters
        # All at once: expat before 2.6 reads a long tag again with every piece of it.
        parser.Parse(data, True)

    def started(self, tag: str, parent: str, attributes: dict[str, str]) -> None:
        """Take note of the beginning of an element that we know."""

    def ended(self, tag: str) -> None:
        """Take note of the end of an element that we know."""

    def characters(self, text: str) -> None:
        """Take characters, which may be a part of those of an element."""

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _TAGS.get(name, "")
        if tag:
            self.started(tag, self.open_tags[-1] if self.open_tags else "", attributes)
        self.open_tags.append(tag)
        self.n_elements += 1
        if self.n_elements > _MOST_ELEMENTS:
            raise UnreadableError(f"{TOO_LARGE} {_MOST_ELEMENTS:,} XML elements")
        if len(self.open_tags) > _DEEPEST:
            raise UnreadableError(f"{TOO_LARGE} {_DEEPEST} XML elements inside each other")

    def _end(self, name: str) -> None:
        if tag := self.open_tags.pop():
            self.ended(tag)


class _Body(_Reader):
    """The text of a document: paragraphs, each behind a blank line, and a line for each row."""

    def __init__(self, heading_levels: dict[str, int]) -> None:
        super().__init__()
        self.heading_levels = heading_levels
        self.out: list[str] = []
        self.paragraphs: list[list[str]] = []  # those that are open: a text box is in another one
        self.levels: list[int] = []  # of these paragraphs' headings
        self.n_tables = 0
        self.n_fallbacks = 0  # what is in them is there already, written for newer programs

    def started(self, tag: str, parent: str, attributes: dict[str, str]) -> None:
        """Open a paragraph or a table, or write a sign."""
        if tag == "p":
            self.paragraphs.append([])
            self.levels.append(0)
        elif tag == "tbl":
            self.n_tables += 1
        elif tag == "Fallback":
            self.n_fallbacks += 1
        elif tag == "pStyle" and self.levels:
            style = _value(attributes)
            self.levels[-1] = self.heading_levels.get(style, 0)
        elif tag in _SIGNS and parent == "r":  # a tab elsewhere is a stop of the ruler
            self._write(_SIGNS[tag])

    def ended(self, tag: str) -> None:
        """Write out a paragraph, or the end of a row."""
        if tag == "Fallback":
            self.n_fallbacks -= 1
        elif tag == "p":
            self._end_paragraph("".join(self.paragraphs.pop()), self.levels.pop())
        elif tag == "tbl":
            self.n_tables -= 1
            self.out.append("\n")
        elif tag == "tr":
            self.out.append("\n")

    def characters(self, text: str) -> None:
        """Write what is in a `t`."""
        if self.open_tags and self.open_tags[-1] == "t":
            self._write(text)

    def _write(self, text: str) -> None:
        if self.paragraphs and not self.n_fallbacks:
            self.paragraphs[-1].append(text)

    def _end_paragraph(self, line: str, level: int) -> None:
        if self.n_tables and line:
            self.out.append(f"{line} ")
        elif line.strip():
            heading = f"{'#' * min(level, _DEEPEST_HEADING)} " if level else ""
            self.out.append(f"{heading}{line}\n\n")


class _Styles(_Reader):
    """The styles of headings."""

    def __init__(self) -> None:
        super().__init__()
        self.style = ""
        self.levels: dict[str, int] = {}

    def started(self, tag: str, parent: str, attributes: dict[str, str]) -> None:
        """Note the level of "heading 2" and the like; a title has that of the first heading."""
        if tag == "style":
            self.style = _value(attributes, "styleId")
        elif tag == "name" and parent == "style":
            kind, _, number = _value(attributes).lower().partition(" ")
            if kind == "title" and not number:
                self.levels[self.style] = 1
            elif kind == "heading" and number in set("0123456789"):
                self.levels[self.style] = int(number)


class _Properties(_Reader):
    """The title of a document, where it says one."""

    def __init__(self) -> None:
        super().__init__()
        self.title: list[str] = []

    def characters(self, text: str) -> None:
        """Take those of the title."""
        if self.open_tags and self.open_tags[-1] == "title":
            self.title.append(text)


def _heading_levels(styles: bytes) -> dict[str, int]:
    reader = _Styles()
    reader.read(styles)
    return reader.levels


def _title(properties: bytes) -> str:
    reader = _Properties()
    reader.read(properties)
    return "".join(reader.title)


def _value(attributes: dict[str, str], name: str = "val") -> str:
    values = (attributes.get(f"{space} {name}") for space in _WORD)
    return next(filter(None, values), "")


def _refuse_doctype(*declared: object) -> None:
    raise UnreadableError("declares a document type, as no program for Word documents does")
