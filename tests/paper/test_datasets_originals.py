"""The parsers of the original formats, on handwritten miniatures of the files."""

import bz2
import gzip
import io
import tarfile

import numpy as np
import pytest
from scipy.sparse import csr_array

from vdsh.documents import read_documents
from vdsh.errors import InputError
from vdsh.paper.datasets import newsgroups, rcv1, reuters, tmc
from vdsh.paper.datasets.rcv1_counts import recover_counts

POST = "From: a@b (\xe9)\nLines: 1\nSubject: moon\n\nThe orbit\x0c\n"
STORY = """<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="X" OLDID="5" NEWID="{number}">
<DATE>26-FEB-1987 15:01:01.79</DATE>
<TOPICS>{labels}</TOPICS>
<PLACES><D>usa</D></PLACES>
<UNKNOWN> &#5;&#5;&#5;C T\n&#22;&#22;&#1;f0704&#31;reute</UNKNOWN>
<TEXT{kind}>&#2;
{text}</TEXT>
</REUTERS>
"""
PLAIN = (
    "<TITLE>{0} &lt;X> UP</TITLE>\n<DATELINE>    NEW YORK - </DATELINE><BODY>Said {0} &amp; Co\n"
)
PLAIN += "more.\n Reuter\n&#3;</BODY>"


def pack(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def story(number, labels, text=None, *, topics="YES", split="TRAIN", kind=""):
    marks = "".join(f"<D>{label}</D>" for label in labels)
    text = PLAIN.format(f"story {number}") if text is None else text
    return STORY.format(
        topics=topics, split=split, number=number, labels=marks, kind=kind, text=text
    )


def pack_posts(folder):
    files = {"20news-bydate-test/sci.space/7": b"Subject: later\n\nx\n"}
    files |= {f"20news-bydate-train/sci.space/{i}": POST.encode("latin-1") for i in (10, 9)}
    pack(folder / "20news-bydate.tar.gz", files | {"20news-bydate-train/README": b"no post"})


def pack_stories(folder):
    first = story(1, ["grain", "corn"]) + story(2, ["grain"], split="NOT-USED")
    first += story(3, ["grain"], topics="NO") + story(4, ["only-in-train"]) + story(5, [])
    first += story(1199, ["grain"])
    brief = "<TITLE>&lt;GM> SETS\n PAYOUT</TITLE>&#3;"
    second = story(14826, ["grain", "only-in-test"], brief, split="TEST", kind=' TYPE="BRIEF"')
    raw = "MONEY RATES\t1 &#127; 2\n REUTER\n&#3;"
    second += story(14827, ["corn"], raw, split="TEST", kind=' TYPE="UNPROC"')
    names = ("reut2-021.sgm", "reut2-000.sgm", "README.txt")
    contents = (second, "<!DOCTYPE lewis SYSTEM>\n" + first, story(6, ["grain"]))
    files = dict(zip(names, (text.encode("latin-1") for text in contents), strict=True))
    pack(folder / "reuters21578.tar.gz", files)


def pack_vectors(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for part, number in [("train", 2286), *((f"test_pt{i}", 26151 + i) for i in range(4))]:
        lines = f"{number}  864:0.6 1523:0.8\n{number + 50}  7:1.0\n"
        (folder / f"lyrl2004_vectors_{part}.dat.gz").write_bytes(gzip.compress(lines.encode()))
    keys = [key for start in (2286, *range(26151, 26155)) for key in (start, start + 50)]
    topics = "".join(f"ECAT {key} 1\nE11 {key} 1\n" for key in keys) + "CCAT 2286 1\n"
    (folder / "rcv1v2.topics.qrels.gz").write_bytes(gzip.compress(topics.encode()))


def pack_libsvm(folder):
    folder.mkdir(parents=True, exist_ok=True)
    lines = {"train": "4,18 1:0.7071 30438:0.7071\n 2:1.0\n", "test": "0 5:0.4472 9:0.8944\n"}
    for part, text in lines.items():
        (folder / f"tmc2007_{part}.svm.bz2").write_bytes(bz2.compress(text.encode()))


def test_posts_are_read_from_the_tar_archive(tmp_path):
    pack_posts(tmp_path)
    newsgroups.parse(tmp_path)
    posts = list(read_documents(tmp_path / "documents.jsonl.gz"))
    assert [post.id for post in posts] == ["sci.space/9", "sci.space/10", "sci.space/7"]
    assert [post.metadata["split"] for post in posts] == ["train", "train", "test"]
    assert posts[0].text == POST.replace("\x0c", " ")
    assert posts[0].labels == ("sci.space",)
    assert newsgroups.read(tmp_path).documents.texts[2] == "Subject: later\n\nx\n"


def test_stories_are_read_from_sgml(tmp_path):
    pack_stories(tmp_path)
    reuters.parse(tmp_path)
    stories = {story.id: story for story in read_documents(tmp_path / "documents.jsonl.gz")}
    assert list(stories) == ["training/1", "test/14826", "test/14827"]
    assert stories["training/1"].text == "story 1 <X> UP\nSaid story 1 & Co\nmore."
    assert stories["training/1"].labels == ("corn", "grain")
    assert stories["test/14826"].text == "<GM> SETS\n PAYOUT"
    assert stories["test/14826"].labels == ("grain",)
    assert stories["test/14827"].text == "MONEY RATES\t1   2"
    assert [story.metadata["split"] for story in stories.values()] == ["train", "test", "test"]


def test_rcv1_is_read_from_vectors_and_topics(tmp_path):
    pack_vectors(tmp_path)
    rcv1.parse(tmp_path)
    corpus = rcv1.read(tmp_path)
    assert corpus.documents.ids[:3] == ["train/2286", "train/2336", "test/26151"]
    assert corpus.documents.labels[:2] == [("CCAT", "E11", "ECAT"), ("E11", "ECAT")]
    assert corpus.documents.features.shape == (10, 47_236)
    assert corpus.documents.features[[0]].indices.tolist() == [863, 1522]
    (tmp_path / "rcv1v2.topics.qrels.gz").write_bytes(gzip.compress(b"ECAT x 1\n"))
    with pytest.raises(InputError, match="line 1: not `TOPIC ID 1`: 'ECAT x 1'"):
        rcv1.parse(tmp_path)


def test_tmc_is_read_from_libsvm(tmp_path):
    pack_libsvm(tmp_path)
    tmc.parse(tmp_path)
    corpus = tmc.read(tmp_path)
    assert corpus.documents.ids == ["train/1", "train/2", "test/1"]
    assert corpus.documents.labels == [("class05", "class19"), (), ("class01",)]
    assert corpus.documents.features[[2]].toarray()[0, [4, 8]].tolist() == [1, 2]
    assert corpus.documents.features.shape == (3, 30_438)


@pytest.mark.parametrize("parse", [newsgroups.parse, reuters.parse])
def test_a_damaged_archive_gets_a_sentence_and_leaves_nothing(tmp_path, parse):
    for name in ("20news-bydate.tar.gz", "reuters21578.tar.gz"):
        (tmp_path / name).write_bytes(b"\x1f\x8b\x08 not gzip at all")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match="cut off or damaged .*Delete it and download it again"):
        parse(tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def ltc(n_docs, n_terms, seed):
    """Make counts and their weights: (1 + ln tf) * ln(N / n), rows of length 1, six decimals."""
    rng = np.random.RandomState(seed)
    shares = 1 / np.arange(20, n_terms + 20)  # stop words are not among them
    held = rng.uniform(size=(n_docs, n_terms)) < shares * 12
    repeats = rng.uniform(0.3, 0.95, n_terms)  # names come again and again, other words do not
    counts = csr_array(held * rng.geometric(repeats, (n_docs, n_terms)))
    idf = np.log(n_docs / np.bincount(counts.indices, minlength=n_terms).clip(1))
    weights = (1 + np.log(counts.data)) * idf[counts.indices]
    rows = np.repeat(np.arange(n_docs), np.diff(counts.indptr))
    weights /= np.sqrt(np.bincount(rows, weights**2))[rows]
    return counts, csr_array((weights.round(6), counts.indices, counts.indptr), counts.shape)


@pytest.mark.parametrize("sample", [60_000, 800])
def test_counts_are_recovered_from_weights(sample):
    counts, weights = ltc(2000, 1500, seed=0)
    assert (counts.data > 1).mean() > 0.25
    found, reproduced = recover_counts(weights, n_training=2000, sample=sample)
    assert (found.data == counts.data).mean() > 0.999
    assert reproduced > 0.995
    again, _ = recover_counts(weights, n_training=2000, sample=sample)
    assert (found != again).nnz == 0


def test_counts_of_a_few_documents_do_not_fail():
    weights = csr_array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    found, _ = recover_counts(weights)
    assert (found.toarray() > 0).tolist() == (weights.toarray() > 0).tolist()
    assert recover_counts(csr_array((3, 5)))[0].shape == (3, 5)
    with pytest.raises(InputError, match="Weights must be positive. Got -0.5"):
        recover_counts(csr_array([[0.5, -0.5]]))
