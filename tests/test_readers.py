"""Files that people have: each kind gives its text and title, or one reason (#35)."""

import gzip
import io
import json
import os
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vdsh.documents import pdf, read_documents
from vdsh.documents.folder import SkippedFilesWarning
from vdsh.documents.readers import Contents, read_file
from vdsh.documents.unreadable import UnreadableError

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import fuzz_targets  # noqa: E402
from fuzz_targets import make_docx, make_pdf  # noqa: E402


def read(tmp_path, name, data, **options):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_file(path, **options)


def reason(tmp_path, name, data, **options):
    with pytest.raises(UnreadableError) as caught:
        read(tmp_path, name, data, **options)
    return str(caught.value)


PAGE = """<!doctype html><html><head><title>Set &amp;
 up</title><style>p {}</style></head><body><nav><a>Home</a> menu</nav>
<h1>Guide<a class="headerlink">¶</a></h1><p>Some   <b>b</b>old text,
over lines.<h2><div>Install</div></h2><pre>a = 1
  b</pre><ul><li>one<li>two</ul><script>x("<p>")</script><table><tr><td>1</td><td>2</td></tr></table>
<footer>imprint</footer>"""
PAGE_TEXT = (
    "# Guide\n\nSome bold text, over lines.\n\n## Install\n\na = 1\n  b\n\n- one\n- two\n\n1  2"
)


def test_html_gives_title_headings_and_text_without_menus(tmp_path):
    assert read(tmp_path, "x.HTM", PAGE) == Contents(PAGE_TEXT, "Set & up")


def test_html_begins_with_its_main_part_and_keeps_a_page_of_links(tmp_path):
    words = "the words of the article " * 10
    page = f"<div>Logo, login</div><div role='main'><h1>A</h1>{words}</div>"
    assert read(tmp_path, "x.html", page).text.startswith("# A\n\nthe words")
    links = "<li><a href='x'>link</a></li>\n" * 9
    assert "link" not in read(tmp_path, "x.html", f"<p>{words}<ul>{links}</ul>").text
    assert read(tmp_path, "x.html", f"<ul>{links}</ul>").text.count("link") == 9
    assert read(tmp_path, "x.html", "<nav>never closed <p>words").text == "never closed\n\nwords"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Intro\n\n# The *Title* #\n\n## Other", "The *Title*"),
        ('---\ndate: 2020\ntitle: "From the front"\n---\n# Other', "From the front"),
        ("Title below\n===========\n\ntext", "Title below"),
        ("no heading\n", ""),
    ],
)
def test_markdown_has_the_title_of_its_front_matter_or_first_heading(tmp_path, text, title):
    assert read(tmp_path, "x.md", text) == Contents(text, title)
    assert read(tmp_path, "x.rst.gz", gzip.compress(text.encode())).title == title
    assert read(tmp_path, "x.txt", text) == Contents(text, "")


def test_a_notebook_gives_its_cells(tmp_path):
    cells = [{"cell_type": "markdown", "source": ["# Plot\n", "it"]}, {"source": "x = 1"}]
    data = json.dumps({"cells": cells, "metadata": {}})
    assert read(tmp_path, "x.ipynb", data) == Contents("# Plot\nit\n\nx = 1", "Plot")
    assert reason(tmp_path, "x.ipynb", "[]") == "is not IPYNB, or is damaged"


def test_a_pdf_gives_pages_and_its_first_line(tmp_path):
    pytest.importorskip("pypdf")
    data = make_pdf(["Report of May", "Second page"])
    assert read(tmp_path, "x.pdf", data) == Contents("Report of May\fSecond page", "Report of May")
    assert read(tmp_path, "x.pdf.gz", gzip.compress(data)).title == "Report of May"


def test_a_pdf_without_text_or_with_a_password_says_so(tmp_path):
    pypdf = pytest.importorskip("pypdf")
    assert reason(tmp_path, "x.pdf", make_pdf([""])) == "has no text (a scan?)"
    writer = pypdf.PdfWriter(io.BytesIO(make_pdf(["secret"])))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(out := io.BytesIO())
    assert reason(tmp_path, "x.pdf", out.getvalue()) == "needs a password; save it without one"
    writer = pypdf.PdfWriter(io.BytesIO(make_pdf(["not secret"])))
    writer.encrypt("", "owner", algorithm="AES-128")
    writer.write(out := io.BytesIO())
    assert read(tmp_path, "x.pdf", out.getvalue()).text == "not secret"


def make_packed_pdf(content, n_times):
    """Make a PDF of one page with a long content, packed twice."""
    packed = zlib.compress(zlib.compress(content * n_times, 9), 9)
    layers = b"/Filter[/FlateDecode/FlateDecode]"
    stream = b"<</Length %d%b>>stream\n%b\nendstream" % (len(packed), layers, packed)
    head, _, tail = make_pdf(["x"]).partition(b"<</Length")
    return head + stream + tail.partition(b"endstream")[2]


@pytest.mark.posix("limits of memory and of processor time")
def test_a_small_pdf_that_takes_too_long_is_skipped_and_the_next_one_is_read(tmp_path, monkeypatch):
    pytest.importorskip("pypdf")
    monkeypatch.setattr(pdf, "_SECONDS", 1.0)
    data = make_packed_pdf(b"BT (word) Tj ET ", 2_000_000)
    assert len(data) < 2000
    assert reason(tmp_path, "x.pdf", data) == "takes more than 1 seconds to read"
    assert read(tmp_path, "x.pdf", make_pdf(["next"])).text == "next"


@pytest.mark.linux("limits of memory")
def test_a_small_pdf_that_takes_too_much_memory_is_skipped(tmp_path, monkeypatch):
    pytest.importorskip("pypdf")
    read(tmp_path, "x.pdf", make_pdf(["first, so that pypdf is loaded"]))
    monkeypatch.setattr(pdf, "_MEMORY", 150 * 2**20)
    data = make_packed_pdf(b" ", 70_000_000)
    assert reason(tmp_path, "x.pdf", data) == "takes more than 150 MB of memory to read"
    monkeypatch.undo()
    assert read(tmp_path, "x.pdf", make_pdf(["next"])).text == "next"


@pytest.mark.posix("fork")
def test_a_pdf_can_be_read_on_both_sides_of_a_fork(tmp_path):
    pytest.importorskip("pypdf")
    data = make_pdf(["page"])
    assert read(tmp_path, "x.pdf", data).text == "page"
    child = os.fork()
    if not child:
        os._exit(read(tmp_path, "child.pdf", data).text != "page")
    assert os.waitpid(child, 0)[1] == 0
    assert read(tmp_path, "x.pdf", data).text == "page"


def test_a_pdf_without_pypdf_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    expected = "needs pypdf, which is not installed. Run: pip install 'vdsh[files]'"
    assert reason(tmp_path, "x.pdf", make_pdf(["a"])) == expected


def test_a_word_document_gives_headings_and_tables(tmp_path):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Plan", 0)
    document.add_heading("Install", 1)
    document.add_paragraph("Do this\t<now> & ").add_run("bold").bold = True
    document.add_heading("Linux", 2)
    cells = document.add_table(2, 2)._cells
    for cell, words in zip(cells, ("a", "b", "c", "d"), strict=True):
        cell.text = words
    document.add_paragraph("end", style="List Bullet")
    document.core_properties.title = "R&D plan"
    document.save(tmp_path / "x.docx")
    text = "# Plan\n\n# Install\n\nDo this\t<now> & bold\n\n## Linux\n\na b \nc d \n\nend"
    assert read_file(tmp_path / "x.docx") == Contents(text, "R&D plan")


def test_a_small_word_document_without_other_parts_is_enough(tmp_path):
    assert read(tmp_path, "x.docx", make_docx(["one", "two"])) == Contents("one\n\ntwo", "one")
    assert reason(tmp_path, "x.docx", make_docx([])) == "has no text"
    assert "has a password" in reason(tmp_path, "x.docx", b"\xd0\xcf\x11\xe0 old")


@pytest.mark.parametrize("kind", ["docx", "gz"])
def test_a_bomb_takes_no_more_memory_than_a_document(tmp_path, kind):
    limit, zeros = 10**6, bytes(60 * 10**6)
    if kind == "gz":
        data = gzip.compress(zeros.replace(b"\0", b"a"), 1)
    else:
        with zipfile.ZipFile(
            out := io.BytesIO(), "w", zipfile.ZIP_DEFLATED, compresslevel=1
        ) as file:
            file.writestr("word/document.xml", zeros)
        data = out.getvalue()
    path = tmp_path / f"x.{kind}"
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(UnreadableError):
        read_file(path, limit=limit)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 12 * limit


W = f'xmlns:w="{fuzz_targets.WORD_XML}"'
WITH_A_TEXT_BOX = f"""<x:document xmlns:x="{fuzz_targets.WORD_XML}" xmlns:mc="http://schemas.\
openxmlformats.org/markup-compatibility/2006"><x:body><x:p><x:pPr><x:tabs><x:tab x:val="left"/>
</x:tabs></x:pPr><x:r><x:t>well</x:t><x:noBreakHyphen/><x:t>known<!-- not --> &amp; </x:t><x:br/>
<mc:AlternateContent><mc:Choice><x:txbxContent><x:p><x:r><x:t>boxed</x:t></x:r></x:p>
</x:txbxContent></mc:Choice><mc:Fallback><x:p><x:r><x:t>boxed</x:t></x:r></x:p></mc:Fallback>
</mc:AlternateContent><x:t>end</x:t><x:tab/><x:t>.</x:t></x:r></x:p></x:body></x:document>"""


def pack(document, **options):
    """Pack the XML of a Word document."""
    with zipfile.ZipFile(out := io.BytesIO(), "w", zipfile.ZIP_DEFLATED, **options) as file:
        file.writestr("word/document.xml", document)
    return out.getvalue()


def test_text_boxes_breaks_and_hyphens_of_a_word_document_are_read_once(tmp_path):
    text = read(tmp_path, "x.docx", pack(WITH_A_TEXT_BOX)).text
    assert text == "boxed\n\nwell-known & \nend\t."
    assert read(tmp_path, "x.docx", pack(WITH_A_TEXT_BOX.encode("utf-16"))).text == text


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("<w:t " * 20_000, "is not DOCX, or is damaged"),
        (f"<w:document {W}>" + "<w:p>" * 600, "has more than 500 XML elements inside each other"),
        (f"<w:document {W}>" + "<w:p/>" * 400_000, "is packed more than 200 times"),
        (f"<w:document {W}>" + "<w:p>\ud800", "is not DOCX, or is damaged"),
    ],
    ids=["never closed", "deep", "packed", "not utf-8"],
)
def test_a_hostile_word_document_is_refused(tmp_path, document, why):
    data = pack(document.encode(errors="surrogatepass"))
    assert reason(tmp_path, "x.docx", data).startswith(why)


def test_a_word_document_is_not_unpacked_by_what_word_does_not_use(tmp_path):
    with zipfile.ZipFile(out := io.BytesIO(), "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("word/document.xml", "<x/>")
    why = "is packed in a way that Word does not use"
    assert reason(tmp_path, "x.docx", out.getvalue()) == why


def test_a_word_document_that_declares_entities_is_refused(tmp_path):
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
    why = "declares a document type, as no program for Word documents does"
    assert reason(tmp_path, "x.docx", make_docx(["&b;"], laughs)) == why


@pytest.mark.parametrize("name", ["x.pdf", "x.docx", "x.pdf.gz"])
@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"%PDF-1.4\n", b"\0\xff" * 50, b"plain"])
def test_broken_files_have_a_reason(tmp_path, name, data):
    assert reason(tmp_path, name, data).endswith(", or is damaged")


def test_what_is_not_read_says_why(tmp_path):
    assert reason(tmp_path, "x", b"\x89PNG\0\0") == "is not text"
    assert reason(tmp_path, "x.md", "word " * 300, limit=1000) == "has more than 1,000 bytes"
    assert reason(tmp_path, "x.gz", gzip.compress(b"words")[:-3]) == "is damaged gzip"
    with pytest.raises(UnreadableError, match=r"^cannot be read \(No such file"):
        read_file(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe.pdf")
    with pytest.raises(UnreadableError, match="^is not a regular file$"):
        read_file(tmp_path / "pipe.pdf")


def test_halves_of_surrogate_pairs_become_question_marks(tmp_path):
    data = '{"cells": [{"source": "é \\ud83d"}]}'
    assert read(tmp_path, "x.ipynb", data).text == "é ?"


def test_a_folder_gives_titles_as_metadata(tmp_path):
    (tmp_path / "docs").mkdir()
    read(tmp_path / "docs", "a.md", "# Moon\n\ntext")
    read(tmp_path / "docs", "b.docx", make_docx(["Mars", "text"]))
    (tmp_path / "docs/c.docx").write_bytes(b"PK")
    with pytest.warns(SkippedFilesWarning, match="c.docx'.: it is not DOCX, or is damaged"):
        first, second = read_documents(tmp_path / "docs")
    assert (first.id, first.metadata) == ("docs/a.md", {"title": "Moon"})
    assert (second.text, second.metadata) == ("Mars\n\ntext", {"title": "Mars"})


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**64))
@pytest.mark.parametrize("kind", fuzz_targets.Files.KINDS)
def test_mutated_files_are_read_or_have_a_reason(seed, kind, tmp_path):
    target = fuzz_targets.Files(kind)
    target.write(tmp_path, Random(seed))
    try:
        target.use(tmp_path, Random(seed))
    except UnreadableError as error:
        assert "\n" not in str(error)
