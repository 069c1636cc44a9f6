"""Stores: documents with their codes on disk or on a server, searched by text or code.

`base` is the contract, `rows` checks documents on the way in, `where` reads filters, `modelled` is
what all stores share. There is a room for each place where a store can be: `local/` (a folder),
`postgres/` and `milvus/`. The stores on servers are one class, `remote`; what it asks of a server
is `engine`. `opening` puts a store and its `model` together, `duplicates` finds near-duplicates,
and `copying` moves documents from one store to another.
"""

import os
from typing import TYPE_CHECKING

from vdsh.store.addresses import Address, read_address, without_password
from vdsh.store.base import Duplicates, Hit, Hits, Store
from vdsh.store.copying import Copied, copy_store
from vdsh.store.opening import open_local, open_remote

if TYPE_CHECKING:
    from vdsh.model import Model
    from vdsh.pipeline import TextHasher
    from vdsh.store.engine import Engine

__all__ = [
    "Copied",
    "Duplicates",
    "Hit",
    "Hits",
    "Store",
    "copy_store",
    "open_store",
    "without_password",
]


def open_store(
    path: str | os.PathLike[str],
    hasher: "TextHasher | Model | str | os.PathLike[str] | None" = None,
    *,
    keep_model: str = "inside",
    wait: float = 30.0,
) -> Store:
    """Open a store, or create one where there is none.

    Parameters
    ----------
    path : path or URL
        The store's folder, `milvus://host:19530/collection`, `milvus-lite:file.db` or
        `postgresql://user:password@host/database?table=name`.
    hasher : TextHasher, Model, path of a model folder, or None
        The model that makes the codes; None takes the one the store was made with, loaded when
        a text has to be encoded.
    keep_model : {"inside", "reference"}, default="inside"
        Whether a new store gets a copy of the model, or remembers only its path and fingerprint.
    wait : float, default=30
        Seconds to wait for another process that is writing, or for a server that went away.

    Returns
    -------
    Store
        Close it, or use it as a context manager.
    """
    address = read_address(os.fspath(path))
    if address is None:
        return open_local(path, hasher, keep_model=keep_model, wait=wait)
    may_create = hasher is not None
    return open_remote(_connect(address, wait, may_create), hasher, keep_model=keep_model)


def _connect(address: Address, wait: float, may_create: bool) -> "Engine":
    """Connect to an engine; its driver is imported now."""
    if address.scheme == "postgresql":
        from vdsh.store.postgres import Postgres

        return Postgres(address, wait=wait)
    from vdsh.store.milvus import connect

    return connect(address, wait=wait, may_create=may_create)
