"""Stores: documents with their codes on disk or on a server, searched by text or code.

`store` is the Store. A query becomes hits in `queries` (a text to words and a code), `searching`
(which call of the engine) and `hits`; `ranking` is their order. What a store asks of the place
where its documents lie is `engine`, and there is a room for each place in `engines/`:
`sqlite` (a folder), `postgres` and `milvus`. `opening` puts a store, its engine and its `model`
together, or makes one of a backup. `rows` checks documents on the way in, `where` reads filters;
`duplicates` finds near-duplicates, `reindex` puts another model under a store, `maintenance` has
checks and backups, and `copying` moves documents from one store to another.
"""

from vdsh.store.addresses import without_password
from vdsh.store.copying import copy_store
from vdsh.store.hits import Duplicates, Hit, Hits
from vdsh.store.opening import open_store, restore_store
from vdsh.store.store import Store

__all__ = [
    "Duplicates",
    "Hit",
    "Hits",
    "Store",
    "copy_store",
    "open_store",
    "restore_store",
    "without_password",
]
