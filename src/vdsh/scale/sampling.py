"""Learning from more documents than memory holds: words of all of them, and a sample to train on.

The documents are read twice. The first time their words are counted, which takes no more memory
than the words; the second time a random sample is kept. A tenth is held out before, so that its
words are not among those counted.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.documents import Document
from vdsh.documents.document import in_batches
from vdsh.errors import InputError
from vdsh.model.profile import LEAST_TO_HOLD_OUT
from vdsh.text import BagOfWords
from vdsh.text.bag_of_words import add_frequencies

# What training holds: measured by benchmarks/bench_memory.py, rounded up.
BASE = 1.2e9  # bytes: torch, kernels, weights and what Adam remembers of them
A_DOCUMENT, A_WORD, A_BYTE = 1_500, 150, 2  # bytes for each document, counted word, byte of text
BATCH = 5_000  # documents whose words are counted at a time
MOST_WORDS = 2_000_000  # distinct ones; beyond, those seen only once are forgotten
LEAST = 1_000  # documents that must fit

Read = Callable[[str], AbstractContextManager[Iterable[Document]]]  # begins to read, with a bar


class Words(NamedTuple):
    """What the first reading finds."""

    documents: int
    frequencies: dict[bytes, int]  # in how many documents each word is
    per_document: float  # how many distinct words a document has in the mean
    bytes_each: float  # how many characters text and fields of a document have in the mean

    def how_many_fit(self, memory: float) -> int:
        """Say how many of the documents can be trained on with so many bytes of memory."""
        each = A_DOCUMENT + A_WORD * self.per_document + A_BYTE * self.bytes_each
        fit = int((memory - BASE - 150 * len(self.frequencies)) / each)
        if fit < LEAST:
            needed = (BASE + 150 * len(self.frequencies) + LEAST * each) / 1e9
            raise InputError(
                f"--memory must be at least {needed:.1f} (GB) here, for {LEAST:,} documents. "
                f"Got {memory / 1e9:g}."
            )
        return fit


class Sample(NamedTuple):
    """What the second reading keeps.

    Attributes
    ----------
    documents, held_out : list of Document
        To learn from, and to validate with.
    rows, held_rows : ndarray of int
        Which of all documents they are.
    total : int
        How many there are.
    words : list of str
        The vocabulary of all that are not held out.
    """

    documents: list[Document]
    held_out: list[Document]
    rows: NDArray[np.intp]
    held_rows: NDArray[np.intp]
    total: int
    words: list[str]


def sample_documents(
    read: Read,
    bag: BagOfWords,
    *,
    n: int | None = None,
    memory: float | None = None,
    share: float = 0.1,
    seed: int = 0,
) -> Sample:
    """Read documents twice and keep a random sample of them.

    Parameters
    ----------
    read : callable
        Begins to read the documents, each time anew; it is told what for.
    bag : BagOfWords
        Its settings choose the vocabulary.
    n : int, optional
        How many to keep, held-out ones included.
    memory : float, optional
        Bytes that training may take: as many documents are kept as fit.
    share : float, default=0.1
        How many of those to hold out.
    seed : int
        Of the choice.
    """
    words = count_words(read, share, seed)
    keep = words.documents if n is None else min(n, words.documents)
    keep = keep if memory is None else min(keep, words.how_many_fit(memory))
    vocabulary = bag.choose(words.frequencies, words.documents)
    held_out = _is_held_out(words.documents, share, seed)
    rng = np.random.RandomState(seed)
    cut = min(int(keep * share), int(held_out.sum())) if keep >= LEAST_TO_HOLD_OUT else 0
    rest = np.sort(rng.permutation(np.flatnonzero(held_out))[:cut])
    rows = np.sort(rng.permutation(np.flatnonzero(~held_out))[: keep - cut])
    wanted = dict.fromkeys(rows.tolist(), True) | dict.fromkeys(rest.tolist(), False)
    kept: dict[bool, list[Document]] = {True: [], False: []}
    with read("choosing") as documents:
        for row, document in enumerate(documents):
            if row in wanted:
                kept[wanted[row]].append(document)
    if len(kept[True]) + len(kept[False]) < len(wanted):
        raise InputError("The documents changed while they were read. Learn again.")
    return Sample(kept[True], kept[False], rows, rest, words.documents, vocabulary)


def count_words(read: Read, share: float, seed: int) -> Words:
    """Read the documents, and count in how many that are not held out each word is."""
    rng = np.random.RandomState(seed)
    frequencies: dict[bytes, int] = {}
    n_documents = n_counted = n_characters = n_pairs = 0
    with read("counting words") as documents:
        for batch in in_batches(documents, BATCH):
            held_out = rng.random_sample(len(batch)) < share
            some = [document for document, out in zip(batch, held_out, strict=True) if not out]
            n_pairs += add_frequencies(frequencies, [document.text for document in some])
            n_documents, n_counted = n_documents + len(batch), n_counted + len(some)
            n_characters += sum(map(_length, some))
            if len(frequencies) > MOST_WORDS:
                frequencies = {word: n for word, n in frequencies.items() if n > 1}
    each = max(n_counted, 1)
    return Words(n_documents, frequencies, n_pairs / each, n_characters / each)


def _length(document: Document) -> int:
    return len(document.text) + sum(len(str(value)) for value in document.metadata.values())


def _is_held_out(n_documents: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Choose as `count_words` did, whose numbers come in batches."""
    found: NDArray[np.bool_] = np.random.RandomState(seed).random_sample(n_documents) < share
    return found
