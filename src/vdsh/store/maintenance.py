"""Maintenance of a store: what it says about itself, whether it is sound, its backup."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vdsh.errors import FolderError, InputError
from vdsh.files import check_new, explained, lock, put
from vdsh.model import Model
from vdsh.store.engine import PAGE, PARTS, Engine, Progress, Stored
from vdsh.store.hits import pages
from vdsh.store.model import StoreModel
from vdsh.store.rows import read_codes

ABOUT, DRAFT = "backup.json", "draft"
DOCUMENTS = 1000  # of a server, that are read at a time


def describe(engine: Engine, meta: Mapping[str, str], model: StoreModel) -> dict[str, Any]:
    """Describe a store: how it searches, documents, bits, model, fields, labels, bytes."""
    facts = engine.facts()
    return {
        "path": engine.shown,
        **{name: facts[name] for name in ("engine", "search", "words") if name in facts},
        "language": engine.language().name,
        "documents": engine.count(None),
        "bits": model.n_bits,
        "model": {"fingerprint": model.fingerprint if model.n_bits else ""} | _parts(model.model),
        "fields": sorted(engine.fields()),
        "labels": len(engine.labels()),
        "bytes": facts["bytes"],
        "format": int(meta["format"]),
        "read_only": engine.read_only,
    }


def written_last(engine: Engine, n: int) -> list[Stored]:
    """Return the n documents that were written last, or say that it is not known which they are."""
    if engine.written is None:
        raise InputError(
            f"'{engine.shown}' does not know which documents were written last. Give them: vdsh "
            "drift STORE DOCS, or store.drift(documents)."
        )
    return engine.written(n)


def _parts(model: Model) -> dict[str, Any]:
    if model.second is None:
        return {}
    bits = {"topic_bits": model.topic.n_bits, "vector_bits": model.second.n_bits}
    return bits | {"embedder": model.embedder or "none"}


def find_problems(engine: Engine, model: StoreModel, sample: int) -> list[str]:
    """Say what is wrong with a store and what to do: nothing where all is well."""
    found, ids, of = list[str](), list[str](), model.fingerprint
    try:
        if engine.maintenance is not None:
            found.extend(engine.maintenance.problems())
        else:
            for _ in pages(lambda last: engine.page(last, DOCUMENTS), ""):
                pass  # each that is read is compared with its check sum
        for page in pages(lambda last: engine.code_page(last, PAGE, of), ""):
            ids += read_codes(page, model.n_bits // 8)[0]
        found += _wrong_codes(engine, model, ids, sample)
        engine.code_page("", 1, of)  # raises where the store has got another model meanwhile
    except FolderError as error:
        found.append(str(error))
    return found


def _wrong_codes(engine: Engine, model: StoreModel, ids: Sequence[str], sample: int) -> list[str]:
    """Encode some documents from all over again; complain where the store has other codes.

    Of vectors a store keeps nothing but codes.
    """
    if not model.model.texts_suffice or not sample:
        return []
    chosen = engine.look_up(ids[:: max(1, len(ids) // sample)][:sample])
    codes = model.model.encode([document.text for document, _ in chosen])
    n_wrong = sum(stored != code.tobytes() for (_, stored), code in zip(chosen, codes, strict=True))
    if not n_wrong:
        return []
    return [
        f"The codes of {n_wrong:,} of {len(chosen):,} documents are not those of the model. "
        "Index the documents into a new store."
    ]


def write_backup(
    engine: Engine, file: Path, *, force: bool = False, progress: Progress | None = None
) -> None:
    """Write one state of a store to a file, which is whole or absent."""
    if engine.maintenance is None:
        raise InputError(f"'{engine.shown}' is on a server. {engine.own_tool}")
    check_new(file, force=force)
    inside, place = Path(engine.shown).resolve(), file.resolve()
    if inside == place or inside in place.parents:
        raise InputError(f"'{file}' is inside the store. Give a file somewhere else.")
    with explained(file), _scratch(file) as folder:
        engine.maintenance.copy_to(folder, progress)
        parts = [name for name in PARTS if (folder / name).is_file()]
        (folder / ABOUT).write_text(json.dumps({"vdsh": "backup", "parts": parts}))
        import tarfile

        with tarfile.open(folder / DRAFT, "w") as archive:
            for part in (ABOUT, *parts):
                archive.add(folder / part, part)
        put(folder / DRAFT, file)


@contextmanager
def _scratch(file: Path) -> Iterator[Path]:
    """Give an empty folder beside a file; what a run that was killed left there goes first."""
    folder = file.absolute().with_name(f".{file.name[:200]}.backup")
    if folder.is_symlink():
        raise InputError(f"'{folder}' is a link. Remove it, or give another file.")
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("a") as held:
        if not lock(held):
            raise InputError(f"Another backup is being written to '{file}'.")
        try:
            for left in folder.iterdir():
                if left.name != "lock":
                    left.unlink()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
