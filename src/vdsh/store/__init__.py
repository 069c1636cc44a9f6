"""Stores: documents with their codes on disk, searched by text or code.

`base` is the contract, `local` the store in a folder. It is made of `database` (the SQLite file),
`rows` (documents as table rows), `mirror` (the index that follows the table), `where` (filters),
`snapshot` (one state, searched), `model`, `duplicates`, and `opening`, which puts it together.
"""

import os
import re
from typing import TYPE_CHECKING

from vdsh.errors import InputError
from vdsh.store.base import Duplicates, Hit, Store
from vdsh.store.model import fingerprint
from vdsh.store.opening import open_local

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

__all__ = ["Duplicates", "Hit", "Store", "fingerprint", "open_store"]


def open_store(
    path: str | os.PathLike[str],
    hasher: "TextHasher | str | os.PathLike[str] | None" = None,
    *,
    keep_model: str = "inside",
    wait: float = 30.0,
) -> Store:
    """Open a store, or create one where there is none.

    Parameters
    ----------
    path : path
        The store's folder.
    hasher : TextHasher, path of a model folder, or None
        The model that makes the codes; None takes the one the store was made with, loaded when
        a text has to be encoded.
    keep_model : {"inside", "reference"}, default="inside"
        Whether a new store gets a copy of the model, or remembers only its path and fingerprint.
    wait : float, default=30
        Seconds to wait for another process that is writing.

    Returns
    -------
    Store
        Close it, or use it as a context manager.
    """
    scheme = re.match(r"([a-z][a-z0-9+-]+)://", os.fspath(path))
    if scheme:
        raise InputError(f"There is no store of the kind '{scheme[1]}'. Give the path of a folder.")
    return open_local(path, hasher, keep_model=keep_model, wait=wait)
