"""Vectors of texts by embedding models that people have: `model2vec:…`, `sentence-transformers:…`.

None of these packages is a dependency (extra `embed`). What was embedded once is kept in the cache
folder, a thousand texts a file, so that a second run, or one that was interrupted, goes on there.
"""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.cancel import can_be_given_up, while_wanted
from vdsh.errors import InputError, missing_package
from vdsh.files import cache_folder, new_file

AT_ONCE = 1000  # texts that are embedded and kept together
FEW = 32  # texts that are embedded together where the work may be given up
FEWER = 64  # are not worth a file: queries

Vectors = NDArray[np.float32]


def embed(
    texts: Sequence[str], model: str, *, progress: Callable[[int, int], None] | None = None
) -> Vectors:
    """Embed texts by "model2vec:FOLDER" or "sentence-transformers:NAME": float32, a row a text.

    `progress` is called with the number of texts done, and of all.
    """
    if len(texts) < FEWER:
        return _make(list(texts), model)
    folder = _kept(model)
    parts = []
    for i in range(0, len(texts), AT_ONCE):
        parts.append(_embed_some(list(texts[i : i + AT_ONCE]), model, folder))
        if progress is not None:
            progress(min(len(texts), i + AT_ONCE), len(texts))
    return np.concatenate(parts)


def parse(model: str) -> tuple[str, str]:
    """Split a name into package and what it loads.

    >>> parse("model2vec:models/potion")
    ('model2vec', 'models/potion')
    """
    kind, _, name = model.partition(":")
    if kind not in _LOADERS or not name:
        kinds = " or ".join(f"{kind}:NAME" for kind in _LOADERS)
        raise InputError(
            f"An embedding model is named {kinds}, NAME may be a folder. Got '{model}'."
        )
    return kind, name


def _embed_some(texts: list[str], model: str, folder: Path) -> Vectors:
    import hashlib  # loads OpenSSL, which a search does without

    file = folder / f"{hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]}.npy"
    try:
        found: Vectors = np.load(file, allow_pickle=False)
        if found.ndim == 2 and len(found) == len(texts) and found.dtype == np.float32:
            return found
    except (OSError, ValueError, EOFError):
        pass  # not there, or cut short
    found = _make(texts, model)
    with suppress(OSError):  # such as a full disk: next time they are embedded again
        file.parent.mkdir(parents=True, exist_ok=True)
        with new_file(file) as draft, open(draft, "wb") as out:
            np.save(out, found)
    return found


def _kept(model: str) -> Path:
    """Give the folder of a model's vectors; a folder of weights that changed has another."""
    import hashlib

    _, name = parse(model)
    state = model
    if os.path.isdir(name):
        files = sorted(Path(name).rglob("*"))
        facts = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file()]
        state += repr(facts)
    return cache_folder() / "embeddings" / hashlib.sha256(state.encode()).hexdigest()[:16]


def _make(texts: list[str], model: str) -> Vectors:
    embed_texts = _load(*parse(model))
    # Many texts at once are quicker, and cannot be given up: a service makes them a few at a time.
    size = FEW if can_be_given_up() else max(1, len(texts))
    batches = [texts[i : i + size] for i in range(0, max(1, len(texts)), size)]
    parts = [embed_texts(batch) for batch in while_wanted(batches)]
    vectors = np.concatenate([np.asarray(part, np.float32) for part in parts])
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise InputError(f"'{model}' gave an array of {vectors.shape} for {len(texts):,} texts.")
    return np.where(np.isfinite(vectors), vectors, np.float32(0))


@cache
def _load(kind: str, name: str) -> Callable[[list[str]], Any]:
    try:
        return _LOADERS[kind](name)
    except ImportError as error:
        raise missing_package("Embedding", kind, "embed") from error
    except Exception as error:  # each package has its own; what it says is said
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(
            f"{kind} could not load '{name}': {reason}. Give a folder with the model, or its name "
            "while online once."
        ) from error


def _model2vec(name: str) -> Callable[[list[str]], Any]:
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(name)
    return lambda texts: model.encode(texts)


def _sentence_transformers(name: str) -> Callable[[list[str]], Any]:
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # of the weights; ours is of the texts
    model = SentenceTransformer(name)
    logging.enable_progress_bar()
    return lambda texts: model.encode(texts, show_progress_bar=False)


_LOADERS = {"model2vec": _model2vec, "sentence-transformers": _sentence_transformers}
