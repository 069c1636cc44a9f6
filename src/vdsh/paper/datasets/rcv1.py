"""RCV1-v2 (LYRL2004): Reuters newswire of 1996/97 as vectors of stems, 103 topics."""

import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np

from vdsh.errors import InputError
from vdsh.paper.datasets import formats
from vdsh.paper.datasets.base import Corpus, Source
from vdsh.paper.datasets.download import File

# Documents and stems of the published collection.
_PUBLISHED = 804_414
_N_TERMS = 47_236
_FIGSHARE = "https://ndownloader.figshare.com/files/"

# Addresses and checksums are those of scikit-learn 1.9 (datasets/_rcv1.py).
_PARTS = {
    "train": (5976057, "5468f656d0ba7a83afc7ad44841cf9a53048a5c083eedc005dcdb5cc768924ae"),
    "test_pt0": (5976069, "ed40f7e418d10484091b059703eeb95ae3199fe042891dcec4be6696b9968374"),
    "test_pt1": (5976066, "87700668ae45d45d5ca1ef6ae9bd81ab0f5ec88cc95dcef9ae7838f727a13aa6"),
    "test_pt2": (5976063, "48143ac703cbe33299f7ae9f4995db49a258690f60e5debbff8995c34841c7f5"),
    "test_pt3": (5976060, "dfcb0d658311481523c6e6ca0c3f5a3e1d3d12cde5d7a8ce629a9006ec7dbb39"),
}
_VECTORS = [
    File(f"lyrl2004_vectors_{part}.dat.gz", (f"{_FIGSHARE}{number}",), sha256)
    for part, (number, sha256) in _PARTS.items()
]
_TOPICS = File(
    "rcv1v2.topics.qrels.gz",
    (f"{_FIGSHARE}5976048",),
    "2a98e5e5d8b770bded93afc8930d88299474317fe14181aee1466cc754d0d1c1",
)


def read(folder: Path) -> Corpus:
    """Read term counts, or recover them from the published weights."""
    path = folder / formats.COUNTS
    if path.exists():
        vectors = formats.read_vectors(path, n_terms=_N_TERMS, dtype=np.int32)
        share_reproduced = ""
    else:
        from vdsh.paper.datasets.rcv1_counts import recover_counts

        vectors = formats.read_vectors(folder / formats.VECTORS, n_terms=_N_TERMS)
        counts, reproduced = recover_counts(vectors.values)
        vectors = vectors._replace(values=counts)
        share_reproduced = f" ({reproduced:.2%} of them reproduced)"
    note = (
        f"RCV1-v2, term counts recovered from the published weights{share_reproduced}, "
        f"{len(vectors.ids):,} of {_PUBLISHED:,} documents"
    )
    return formats.corpus_of(vectors, folder, note)


def parse(folder: Path) -> None:
    """Read the vector files (`ID term:weight ...`) and the topics (`TOPIC ID 1`)."""
    from scipy.sparse import csr_array, vstack

    from vdsh.paper.datasets.rcv1_counts import recover_counts

    topics = parse_topics(folder / _TOPICS.name)
    names = sorted({name for row in topics.values() for name in row})
    column = {name: number for number, name in enumerate(names)}
    ids = []
    blocks = []
    numbers = []
    for file in _VECTORS:
        vectors = formats.read_vectors(folder / file.name, n_terms=_N_TERMS)
        part = "train" if "train" in file.name else "test"
        blocks.append(vectors.values)
        for (document,) in vectors.numbers:
            ids.append(f"{part}/{document}")
            numbers.append(tuple(sorted(column[name] for name in topics[document])))
    counts, _ = recover_counts(csr_array(vstack(blocks, format="csr")))
    formats.write_counts(folder, formats.Vectors(ids, numbers, counts), names)


def parse_topics(path: Path) -> dict[int, list[str]]:
    """Read which topics each document has."""
    topics: dict[int, list[str]] = defaultdict(list)
    with formats.reading(path), gzip.open(path, "rt", encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if len(fields) != 3 or not fields[1].isdigit():
                raise InputError(f"'{path}', line {number}: not `TOPIC ID 1`: {line.strip()!r}.")
            topics[int(fields[1])].append(fields[0])
    return topics


SOURCE = Source(
    name="rcv1",
    title="RCV1-v2 / LYRL2004, vectors",
    home="http://www.ai.mit.edu/projects/jmlr/papers/volume5/lewis04a/lyrl2004_rcv1v2_README.htm",
    licence="vectors distributed freely for research; the text needs an agreement with NIST",
    citation="Lewis, Yang, Rose, Li, RCV1: A New Benchmark Collection for Text Categorization "
    "Research, JMLR 5 (2004)",
    used="all 103 topics; term counts are recovered from the published weights",
    documents=_PUBLISHED,
    labels=103,
    read=read,
    folder="rcv1",
    layout=(formats.COUNTS, formats.VECTORS),
    files=(*_VECTORS, _TOPICS),
    parse=parse,
)
