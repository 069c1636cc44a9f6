"""Open a store, make one with the model that belongs to it, or make one of a backup."""

import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdsh.codes import MAX_BITS
from vdsh.errors import FolderError, InputError, OutputExistsError
from vdsh.files import new_folder
from vdsh.model import Model, WordsOnly
from vdsh.persistence import WRONG
from vdsh.search.id_kinds import show
from vdsh.search.index import check_device
from vdsh.store.addresses import read_address
from vdsh.store.engine import FORMAT, PARTS, Engine, no_store
from vdsh.store.maintenance import ABOUT
from vdsh.store.model import load_model
from vdsh.store.store import Store
from vdsh.text.languages import language as find_stems

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

HEX_DIGITS = set("0123456789abcdef")
N_BITS = {str(n) for n in range(0, MAX_BITS + 1, 8)}
# What a store says about itself, the format first, and what each value must be like.
META: dict[str, Callable[[str], bool]] = {
    "format": lambda value: value.isascii() and value.isdecimal() and len(value) < 10,
    "uuid": lambda value: len(value) == 32 and set(value) <= HEX_DIGITS,
    "n_bits": lambda value: value in N_BITS,
    "fingerprint": lambda value: len(value) == 64 and set(value) <= HEX_DIGITS,
    "previous": lambda value: len(value) in (0, 64) and set(value) <= HEX_DIGITS,
    "language": lambda value: (
        not value or (value.isascii() and value.isalpha() and value.islower())
    ),
}
MOST_ABOUT = 10_000  # bytes


def open_store(
    path: str | os.PathLike[str],
    hasher: "TextHasher | Model | str | os.PathLike[str] | None" = None,
    *,
    create: bool = True,
    wait: float = 30.0,
    device: str = "cpu",
    language: str | None = None,
) -> Store:
    """Open a store, or create one where there is none.

    Parameters
    ----------
    path : path or URL
        The store's folder, `milvus://host:19530/collection`, `milvus-lite:file.db` or
        `postgresql://user:password@host/database?table=name`.
    hasher : TextHasher, Model, path of a model folder, or None
        The model that makes the codes; None takes the one the store has, loaded when a text has
        to be encoded. A new store without a model answers by words, until `Store.learn`.
    create : bool, default=True
        Whether to make a store where there is none; False raises.
    wait : float, default=30
        Seconds to wait for another process that is writing, or for a server that went away.
    device : str, default="cpu"
        Where a store in a folder searches its codes: "cuda" is a GPU, for which torch must be
        installed. Answers are the same.
    language : str, optional
        Of the words of a new store, which decides on stems and stop words: "english", "german",
        or "none". By default its first documents tell.

    Returns
    -------
    Store
        Close it, or use it as a context manager.
    """
    if language is not None:
        find_stems(language)  # or say which there are
    connect = _connector(os.fspath(path), wait, device)
    engine = connect(may_create=create)
    try:
        given = None if hasher is None else load_model(hasher)
        meta = engine.meta()
        if not meta:
            if not create:
                raise no_store(engine.shown)
            new = given or WordsOnly()
            meta = engine.create(_new_meta(new, language), new)
        _check_meta(engine.shown, meta)
        _check_same(engine.shown, meta, given)
        _check_language(engine.shown, meta, language)
        return Store(engine, meta, given, reopen=partial(connect, may_create=False))
    except BaseException:
        engine.close()
        raise


def _connector(path: str, wait: float, device: str) -> Callable[..., Engine]:
    """Return what connects to an engine, wherever this process is then; its driver is imported."""
    check_device(device)
    address = read_address(path)
    if address is None:
        from vdsh.store.engines.sqlite import Sqlite

        return partial(Sqlite, Path(path).absolute(), shown=path, wait=wait, device=device)
    if device != "cpu":
        raise InputError(
            f"device={device!r} is for stores in a folder: this one is searched by its server. "
            "Leave device out."
        )
    if address.scheme == "postgresql":
        from vdsh.store.engines.postgres import Postgres

        return partial(Postgres, address, wait=wait)
    from vdsh.store.engines.milvus import Milvus

    if address.scheme == "milvus-lite":
        address = address._replace(place=os.path.abspath(address.place))
    return partial(Milvus, address, wait=wait)


def _new_meta(model: Model, language: str | None) -> dict[str, str]:
    return ({"language": language} if language else {}) | {
        "format": str(FORMAT),
        "uuid": uuid.uuid4().hex,
        "n_bits": str(model.n_bits),
        "fingerprint": model.fingerprint,
    }


def _check_meta(shown: str, meta: Mapping[str, Any]) -> None:
    """Raise unless a store says about itself what `_new_meta` wrote: names of files come of it."""
    for name, is_right in META.items():
        value = meta.get(name, "")
        if not isinstance(value, str) or not is_right(value):
            raise FolderError(
                f"'{shown}' is damaged: its {name} is {show(value)}. Restore a copy, or index the "
                "documents into a new store."
            )
        if name == "format" and int(value) != FORMAT:
            older = "Index the documents into a new store."
            raise FolderError(
                f"'{shown}' has format {value}; this version reads {FORMAT}. "
                f"{older if int(value) < FORMAT else 'Upgrade vdsh to open it.'}"
            )


def _check_same(shown: str, meta: Mapping[str, str], model: Model | None) -> None:
    n_bits, own = int(meta["n_bits"]), meta["fingerprint"]
    if model is not None and model.n_bits and not n_bits:
        raise InputError(
            f"'{shown}' has no model yet, so open it without one. To put this one under it: vdsh "
            f"learn '{shown}' --model MODEL (in Python: store.learn(model=…))."
        )
    if model is not None and (given := model.fingerprint) != own:
        raise InputError(
            f"'{shown}' has the codes of another model ({n_bits} bits, {own[:12]}) than the one "
            f"given ({model.n_bits} bits, {given[:12]}), and codes of two models cannot be "
            f"compared. Use its own, which `vdsh info '{shown}'` names (in Python: open it without "
            f"a model); or give the store this one: vdsh reindex '{shown}' --model MODEL."
        )


def _check_language(shown: str, meta: Mapping[str, str], language: str | None) -> None:
    own = meta.get("language")
    if language is not None and own != language:
        has = f"has the language '{own}'" if own else "takes its language from its first documents"
        raise InputError(
            f"'{shown}' {has}, and only a new store can be given one. Leave '{language}' out, or "
            "index the documents into a new store."
        )


def restore_store(file: str | os.PathLike[str], path: str | os.PathLike[str]) -> Store:
    """Make a store of a backup, in a new folder, and open it.

    Parameters
    ----------
    file : path
        What `Store.back_up` wrote.
    path : path
        The new store's folder.
    """
    import tarfile

    if not Path(file).is_file():
        raise InputError(f"There is no file '{file}'. Give a file that vdsh backup wrote.")
    if Path(path).exists():
        raise OutputExistsError(f"'{path}' exists. Restore into a new folder, then rename it.")
    with new_folder(Path(path), replaces=False) as draft:
        try:
            _unpack(Path(file), draft)
        except (*WRONG, EOFError, tarfile.TarError) as error:
            raise FolderError(
                f"'{file}' is not a whole backup of vdsh ({error}). Nothing was restored."
            ) from error
        with open_store(draft, create=False) as store:
            problems = store.check(sample=0)  # who gave codes of their own gets them back
        if problems:
            raise FolderError(f"'{file}' is damaged: {problems[0]} Nothing was restored.")
    return open_store(path)


def _unpack(file: Path, folder: Path) -> None:
    """Write the parts of a backup: plain files of known names, each once, the first says what.

    The archive is not compressed, so what is written is no larger than it is.
    """
    import tarfile

    with tarfile.open(file, "r:") as archive:
        left = [ABOUT, *PARTS]
        while (member := archive.next()) is not None:
            plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
            content = archive.extractfile(member) if plain and member.name in left else None
            if content is None or (member.name == ABOUT) != (ABOUT in left):
                raise ValueError(f"it has a part {show(member.name)}")
            left.remove(member.name)
            if member.name != ABOUT:
                with (folder / member.name).open("wb") as part:
                    shutil.copyfileobj(content, part)
            elif json.loads(content.read(MOST_ABOUT))["vdsh"] != "backup":
                raise ValueError("it is of another kind")
    if ABOUT in left or PARTS[0] in left:
        raise ValueError("it has no store")
