"""Open a store, or make one, with the model that belongs to it."""

import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdsh.codes import MAX_BITS
from vdsh.errors import FolderError, InputError
from vdsh.model import Model
from vdsh.search.id_kinds import show
from vdsh.search.index import check_device
from vdsh.store.addresses import read_address
from vdsh.store.engine import Engine, no_store
from vdsh.store.model import FOLDER, INSIDE, load_model
from vdsh.store.store import Store

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

FORMAT = 2  # 1 had no word index
KEEPING = ("inside", "reference")
# What a store says about itself, the format first.
META = {
    "format": "[0-9]{1,9}",
    "uuid": "[0-9a-f]{32}",
    "n_bits": "|".join(str(n) for n in range(8, MAX_BITS + 1, 8)),
    "fingerprint": "[0-9a-f]{64}",
    "keep_model": "|".join(KEEPING),
    "model": "(?s:.+)",
}


def open_store(
    path: str | os.PathLike[str],
    hasher: "TextHasher | Model | str | os.PathLike[str] | None" = None,
    *,
    keep_model: str = "inside",
    wait: float = 30.0,
    device: str = "cpu",
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
    device : str, default="cpu"
        Where a store in a folder searches its codes: "cuda" is a GPU, for which torch must be
        installed. Answers are the same.

    Returns
    -------
    Store
        Close it, or use it as a context manager.
    """
    if keep_model not in KEEPING:
        raise InputError(f'keep_model must be "inside" or "reference". Got {keep_model!r}.')
    engine = _connect(os.fspath(path), wait, device, may_create=hasher is not None)
    try:
        given = None if hasher is None else load_model(hasher)
        meta = engine.meta()
        if not meta:
            if given is None:
                raise no_store(engine.shown)
            new = _new_meta(hasher, given, keep_model)
            meta = engine.create(new, given if keep_model == "inside" else None)
        _check_meta(engine.shown, meta)
        _check_same(engine.shown, meta, given)
        return Store(engine, meta, given)
    except BaseException:
        engine.close()
        raise


def _connect(path: str, wait: float, device: str, *, may_create: bool) -> Engine:
    """Connect to an engine; its driver is imported now."""
    check_device(device)
    address = read_address(path)
    if address is None:
        from vdsh.store.engines.sqlite import Sqlite

        return Sqlite(Path(path), wait=wait, may_create=may_create, device=device)
    if device != "cpu":
        raise InputError(
            f"device={device!r} is for stores in a folder: this one is searched by its server. "
            "Leave device out."
        )
    if address.scheme == "postgresql":
        from vdsh.store.engines.postgres import Postgres

        return Postgres(address, wait=wait)
    from vdsh.store.engines.milvus import Milvus

    return Milvus(address, wait=wait, may_create=may_create)


def _new_meta(hasher: Any, model: Model, keep_model: str) -> dict[str, str]:
    """Write down what a store has to remember."""
    if keep_model == "reference" and not isinstance(hasher, str | os.PathLike):
        raise InputError('keep_model="reference" needs the path of a model folder as hasher.')
    return {
        "format": str(FORMAT),
        "uuid": uuid.uuid4().hex,
        "n_bits": str(model.n_bits),
        "fingerprint": model.fingerprint,
        "keep_model": keep_model,
        "model": str(Path(hasher).absolute()) if keep_model == "reference" else FOLDER,
    }


def _check_meta(shown: str, meta: Mapping[str, Any]) -> None:
    """Raise unless a store says about itself what `_new_meta` wrote: names of files come of it."""
    for name, pattern in META.items():
        value = meta.get(name)
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise FolderError(
                f"'{shown}' is damaged: its {name} is {show(value)}. Restore a copy, or index the "
                "documents into a new store."
            )
        if name == "format" and int(value) > FORMAT:
            raise FolderError(
                f"'{shown}' has format {value}; this version reads up to {FORMAT}. "
                "Upgrade vdsh to open it."
            )
    if meta["keep_model"] == "inside" and not re.fullmatch(INSIDE, meta["model"]):
        raise FolderError(f"'{shown}' is damaged: its model is not inside. Restore a copy.")


def _check_same(shown: str, meta: Mapping[str, str], model: Model | None) -> None:
    """Raise where a model was given whose codes are not those of the store."""
    n_bits, own = int(meta["n_bits"]), meta["fingerprint"]
    if model is not None and (given := model.fingerprint) != own:
        raise InputError(
            f"'{shown}' has the codes of another model ({n_bits} bits, {own[:12]}) than the one "
            f"given ({model.n_bits} bits, {given[:12]}), and codes of two models cannot be "
            f"compared. Use its own, which `vdsh info '{shown}'` names (in Python: open it without "
            f"a model); or give the store this one: vdsh reindex '{shown}' --model MODEL."
        )
