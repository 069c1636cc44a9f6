"""The layout corpora are kept in: JSON lines, or LIBSVM lines `l1,l2 term:count ... # id`."""

import bz2
import gzip
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.documents import Document, read_documents
from vdsh.documents.writer import write_documents
from vdsh.errors import InputError, MissingFileError, VdshError
from vdsh.files import new_gzip_file
from vdsh.paper.datasets.base import Corpus, Split

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Names of files in the folder of a corpus: texts, term counts, other vectors, names of labels.
DOCUMENTS = "documents.jsonl.gz"
COUNTS = "counts.svm.gz"
VECTORS = "documents.svm.gz"
LABELS = "labels.txt"
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Vectors(NamedTuple):
    """What a file of LIBSVM lines holds.

    Attributes
    ----------
    ids : list of str
        What follows the `#` of each line.
    numbers : list of tuple of int
        The numbers before the first blank: labels, or whatever the file has there.
    values : csr_array of shape (n_docs, n_terms)
    """

    ids: list[str]
    numbers: list[tuple[int, ...]]
    values: "csr_array"


def read_stories(folder: Path) -> list[Document]:
    """Read `documents.jsonl.gz`."""
    return list(read_documents(folder / DOCUMENTS))


def write_stories(folder: Path, documents: Iterable[Document]) -> None:
    """Write `documents.jsonl.gz` in one step."""
    write_documents(folder / DOCUMENTS, documents)


def read_vectors(
    path: Path, *, n_terms: int | None = None, dtype: type[np.generic] = np.float64
) -> Vectors:
    """Read LIBSVM lines, compressed or not."""
    from scipy.sparse import csr_array

    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    ids: list[str] = []
    rows: list[_Row] = []
    with reading(path), opener(path, "rb") as file:
        for line in file:
            pairs, _, key = line.partition(b"#")
            if not pairs.strip():
                continue
            try:
                ids.append(key.strip().decode())
                rows.append(_read_row(pairs, n_terms))
            except (ValueError, OverflowError) as error:
                place = f"'{path}', line {len(rows) + 1}"
                raise InputError(f"{place}: not LIBSVM lines ({error}).") from error
    nothing = np.zeros(0)
    data = np.concatenate([nothing, *(row.values for row in rows)]).astype(dtype)
    indices = np.concatenate([nothing, *(row.terms for row in rows)]).astype(np.int64)
    bounds = np.cumsum([0, *(len(row.terms) for row in rows)])
    n_columns = n_terms or int(indices.max(initial=-1)) + 1
    values = csr_array((data, indices, bounds), shape=(len(ids), n_columns))
    return Vectors(ids, [row.numbers for row in rows], values)


class _Row(NamedTuple):
    """A line: its numbers, columns in rising order, and their values."""

    numbers: tuple[int, ...]
    terms: NDArray[np.float64]
    values: NDArray[np.float64]


def _read_row(line: bytes, n_terms: int | None) -> _Row:
    """Read `l1,l2 term:value ...`."""
    head, _, pairs = line.partition(b" ")
    numbers = tuple(sorted(int(number) for number in head.split(b",") if number))
    fields = np.array(pairs.replace(b":", b" ").split(), np.float64)
    terms = fields[::2] - 1
    values = fields[1::2]
    is_paired = len(fields) == 2 * pairs.count(b":")
    is_rising = bool((np.diff(terms, prepend=-1) > 0).all())
    if not is_paired or not is_rising or (terms % 1).any():
        raise ValueError("no pairs of rising term numbers, from 1 on, and values")
    if n_terms and len(terms) and terms[-1] >= n_terms:
        raise ValueError(f"term {terms[-1] + 1:.0f} of {n_terms}")
    return _Row(numbers, terms, values)


def read_names(path: Path) -> list[str]:
    """Read names, one a line, such as those of the labels."""
    if not path.exists():
        raise MissingFileError(f"No '{path}', which names the numbers in the file beside it.")
    return path.read_text(encoding="utf-8").split()


def corpus_of(vectors: Vectors, folder: Path, note: str) -> Corpus:
    """Name the labels."""
    names = read_names(folder / LABELS)
    highest = max((max(row, default=0) for row in vectors.numbers), default=0)
    if highest >= len(names):
        raise InputError(f"A label number is beyond the {len(names)} names in {LABELS}.")
    labels = [tuple(names[number] for number in row) for row in vectors.numbers]
    return Corpus(Split(vectors.ids, None, [*labels], vectors.values), note)


def write_counts(folder: Path, vectors: Vectors, names: list[str]) -> None:
    """Write `labels.txt` and `counts.svm.gz`, the latter last and in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LABELS).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    bounds = vectors.values.indptr
    with new_gzip_file(folder / COUNTS) as file:
        for row, (key, labels) in enumerate(zip(vectors.ids, vectors.numbers, strict=True)):
            entries = slice(bounds[row], bounds[row + 1])
            terms = (vectors.values.indices[entries] + 1).tolist()
            counts = vectors.values.data[entries].tolist()
            pairs = " ".join(f"{term}:{n}" for term, n in zip(terms, counts, strict=True))
            numbers = ",".join(map(str, labels))
            file.write(f"{numbers} {pairs} # {key}\n".encode())


def as_counts(values: "csr_array") -> "csr_array":
    """Undo a scaling of rows: the smallest value of each becomes 1, the others integers.

    >>> from scipy.sparse import csr_array
    >>> as_counts(csr_array([[0.0, 0.2, 0.4], [0.5, 0.5, 0.0]])).toarray().tolist()
    [[0, 1, 2], [1, 1, 0]]
    """
    from scipy.sparse import csr_array

    sizes = np.diff(values.indptr)
    starts = values.indptr[:-1][sizes > 0]
    least = np.minimum.reduceat(values.data, starts) if len(starts) else values.data
    ratios = values.data / np.repeat(least, sizes[sizes > 0])
    counts = np.rint(ratios).astype(np.int32)
    if np.mean(np.abs(ratios - counts) > 0.02 * counts) > 0.01:
        raise InputError("The vectors are no scaled counts: values are not multiples in their row.")
    return csr_array((counts, values.indices, values.indptr), shape=values.shape)


def clean(text: str) -> str:
    """Blank control characters other than tab and newline."""
    return _CONTROLS.sub(" ", text)


def tar_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Read the files of a tar archive one by one; nothing is unpacked to disk."""
    with reading(path), tarfile.open(path, "r:gz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file:
                yield member.name, file.read()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what is wrong with a compressed file into a sentence."""
    try:
        yield
    except (EOFError, zlib.error, tarfile.TarError, OSError) as error:
        if isinstance(error, VdshError):
            raise
        reason = str(error).partition("\n")[0].rstrip(".:")
        raise InputError(
            f"'{path}' is cut off or damaged ({reason}). Delete it and download it again."
        ) from error
