"""TMC (SIAM 2007 Text Mining Competition): aviation safety reports of NASA's ASRS, 22 labels."""

from pathlib import Path

import numpy as np

from vdsh.paper.datasets import formats
from vdsh.paper.datasets.base import Corpus, Source, as_corpus
from vdsh.paper.datasets.download import File

_PUBLISHED = 28_596
# The competition gave its labels no names.
_NAMES = [f"class{number:02}" for number in range(1, 23)]
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel/"
_VECTORS = {
    part: File(f"tmc2007_{part}.svm.bz2", (f"{_LIBSVM}tmc2007_{part}.svm.bz2",))
    for part in ("train", "test")
}


def read(folder: Path) -> Corpus:
    """Read term counts, or where there are none the texts."""
    if not (folder / formats.COUNTS).exists():
        reports = formats.read_stories(folder)
        return as_corpus(reports, _note("texts", len(reports)))
    terms = folder / "counts_features.txt"
    n_terms = len(formats.read_names(terms)) if terms.exists() else None
    vectors = formats.read_vectors(folder / formats.COUNTS, n_terms=n_terms, dtype=np.int32)
    values = vectors.values
    kind = "counts" if values.nnz and values.data.max() > 1 else "presence or absence"
    note = _note(f"{kind} of {values.shape[1]:,} terms", len(vectors.ids))
    return formats.corpus_of(vectors, folder, note)


def _note(what: str, n_docs: int) -> str:
    return f"TMC (SIAM 2007), {what}, {n_docs:,} of {_PUBLISHED:,} documents"


def parse(folder: Path) -> None:
    """Read LIBSVM's two files of unit-length vectors; labels count from 0."""
    from scipy.sparse import csr_array, vstack

    parts = {
        part: formats.read_vectors(folder / file.name, n_terms=30_438)
        for part, file in _VECTORS.items()
    }
    ids = []
    labels = []
    for part, vectors in parts.items():
        ids += [f"{part}/{number}" for number in range(1, len(vectors.ids) + 1)]
        labels += vectors.numbers
    values = csr_array(vstack([vectors.values for vectors in parts.values()], format="csr"))
    formats.write_counts(folder, formats.Vectors(ids, labels, formats.as_counts(values)), _NAMES)


SOURCE = Source(
    name="tmc",
    title="SIAM 2007 Text Mining Competition (TMC2007)",
    home="https://c3.nasa.gov/dashlink/resources/138/",
    licence="none stated; published by NASA for research",
    citation="SIAM 2007 Text Mining Competition data set, NASA DASHlink",
    used="term counts where they are at hand, else the texts; the download is the version of the "
    "LIBSVM data page (30,438 terms, rows of unit length turned back into counts)",
    documents=_PUBLISHED,
    labels=22,
    read=read,
    folder="tmc",
    layout=(formats.COUNTS, formats.DOCUMENTS),
    files=tuple(_VECTORS.values()),
    parse=parse,
)
