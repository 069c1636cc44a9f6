"""What `vdsh fit` learns from: all documents or a sample, vectors."""

import warnings
from typing import Any, NamedTuple

import vdsh
from vdsh.cli import options
from vdsh.errors import InputError


class Chosen(NamedTuple):
    """The documents to learn from."""

    documents: "list[vdsh.Document]"
    held_out: "list[vdsh.Document]"
    rows: list[int]  # which of all documents those to learn from are
    total: int  # how many there are
    sampled_from: int | None  # the same, where a sample was drawn


def choose(
    docs: str, reading: options.Reading, validation: str | None, seed: int, *, sample: int | None
) -> Chosen:
    """Read documents, or a random sample of them, and hold out a tenth or those of a file."""
    from vdsh.model.profile import hold_out

    numbered, total = reading.draw(docs, sample)
    kept, rest = hold_out(len(numbered), seed, 0.1 if validation is None else 0)
    held_out = [numbered[i][0] for i in rest]
    if validation is not None:
        held_out = [document for document, _ in reading.draw(validation, sample)[0]]
    documents, rows = [numbered[i][0] for i in kept], [numbered[i][1] for i in kept]
    return Chosen(documents, held_out, rows, total, total if len(numbered) < total else None)


def make_hasher(
    model: str | None, bits: int, preset: str, seed: int, given: dict[str, Any]
) -> "vdsh.TextHasher":
    """Make a hasher with the settings that were given."""
    from vdsh.codes import check_n_bits
    from vdsh.hashers import default_method
    from vdsh.hashers.vdsh.presets import paper_settings

    if preset not in ("best", "paper"):
        raise InputError(f"--preset must be best or paper. Got '{preset}'.")
    model = model or ("vdsh" if preset == "paper" else default_method())
    settings = paper_settings(model) if preset == "paper" else {}
    hasher = vdsh.TextHasher(model, check_n_bits(bits), random_state=seed, **(settings | given))
    hasher.check_settings()
    return hasher


def check_documents(
    documents: "list[vdsh.Document]", hasher: "vdsh.TextHasher", reading: options.Reading
) -> None:
    """Raise where labels are needed and there are none; warn of texts that look like HTML."""
    from vdsh.documents.markup import looks_like_html
    from vdsh.hashers import HASHERS

    if HASHERS[hasher.model].supervised and all(each.labels is None for each in documents):
        others = sorted({name for document in documents[:1000] for name in document.metadata})
        there = "Other fields are " + ", ".join(f"'{name}'" for name in others)
        there = there if others else "There is no other field"
        raise InputError(
            f"The model '{hasher.model}' learns from labels, and no document has any in "
            f"'{reading.labels_field}'. {there}: name the one that holds them with "
            "--labels-field, or choose an unsupervised model (vdsh)."
        )
    n_pages = 0 if reading.html else sum(looks_like_html(each.text) for each in documents)
    if 2 * n_pages > len(documents):
        warnings.warn(
            f"{n_pages:,} of {len(documents):,} documents look like HTML, whose tags count as "
            "words. Leave them out with --html, here and in `vdsh index`.",
            stacklevel=2,
        )


def read_vectors(
    vectors: str | None,
    embedder: str | None,
    documents: "list[vdsh.Document] | None",
    rows: list[int] | None = None,
    total: int | None = None,
    *,
    quiet: bool,
) -> Any:
    """Read the vectors of documents, or of a file alone, or make them, where there are any."""
    import numpy as np

    from vdsh.cli.vectors import vectors_of
    from vdsh.fitting import embed_with_bar

    if vectors is not None:
        return vectors_of(vectors, documents, rows, total)
    if embedder is None or documents is None:
        return None
    order = np.argsort(rows or range(len(documents)))  # of the file: what the cache knows
    texts = [documents[i].text for i in order]
    return embed_with_bar(texts, embedder, progress=not quiet)[np.argsort(order)]
