"""Word documents, by the standard library: a zip file of XML, of which three parts matter.

The XML is searched, not parsed: so nothing that it declares can grow.
"""

import html
import io
import re
import zipfile

_ENTRY, _MOST_FILES = b"PK\x01\x02", 10_000  # in the zip file: fonts, pictures, comments
_STYLE = re.compile(
    r'<w:style\b[^>]*w:styleId="([^"]*)"[^>]*>\s*<w:name w:val="(?:heading (\d)|Title)"', re.I
)
_TOKEN = re.compile(
    r'<w:pStyle\b[^>]*w:val="(?P<style>[^"]*)"|<w:t(?: [^>]*)?>(?P<words>[^<]*)'
    r"|<(?P<tag>w:tab(?=/)|(?:w:br|w:cr|w:tbl|/w:tbl|/w:tr|/w:p)\b)"
    r"|<mc:Fallback>.*?(?:</mc:Fallback>|\Z)",  # the same again, for old programs
    re.DOTALL,
)
_SIGNS = {"w:tab": "\t", "w:br": "\n", "w:cr": "\n"}


def read_docx(data: bytes, most: int) -> tuple[str, str]:
    """Return text, with Markdown headings, and title; raise ValueError over `most` bytes."""
    if data.count(_ENTRY) > _MOST_FILES:
        raise ValueError("too many files inside")
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        styles, core = (
            _part(file, name, most) for name in ("word/styles.xml", "docProps/core.xml")
        )
        body = _part(file, "word/document.xml", most)
    text = _text(body, {id: int(level or 1) for id, level in _STYLE.findall(styles)})
    title = re.search("<dc:title>([^<]*)", core)
    return text, (html.unescape(title[1]) if title else "") or text.partition("\n")[0].lstrip("# ")


def _part(file: zipfile.ZipFile, name: str, most: int) -> str:
    if name not in file.namelist() and "document" not in name:
        return ""
    with file.open(name) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise ValueError("too large")
    return data.decode()


def _text(body: str, levels: dict[str, int]) -> str:
    out, paragraph, level, tables = list[str](), list[str](), 0, 0
    for token in _TOKEN.finditer(body):
        style, words, tag = token.groups()
        level = levels.get(style, 0) if style else level
        tables += {"w:tbl": 1, "/w:tbl": -1}.get(tag, 0)
        paragraph.append(html.unescape(words or _SIGNS.get(tag, "")))
        if tag == "/w:p":
            line = "".join(paragraph)
            head = f"{'#' * min(level, 6)} " if level and line.strip() else ""
            out.append(f"{line} " if tables else f"{head}{line}\n\n" if line.strip() else "")
            paragraph, level = [], 0
        out.append("\n" if tag in ("/w:tr", "/w:tbl") else "")
    return "".join(out).strip()
