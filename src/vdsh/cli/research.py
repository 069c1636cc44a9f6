"""Research verbs: `vdsh export`, `map` and `datasets`."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vdsh
from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import columns, say
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.corpus_map import CorpusMap
    from vdsh.paper.datasets import Source

EXAMPLES = {
    "export": "Example: vdsh research export news-store --to faiss --out news.faiss",
    "map": "Example: vdsh research map news-store --seed 1",
    "datasets": "Example: vdsh research datasets reuters --download",
}
_KNOWN = ("name", "title", "home", "documents", "labels", "licence", "citation", "used")


def export(
    source: str = options.STORE,
    to: str = option(..., "faiss, npy, parquet or hex for codes; or model."),
    out: str = option(..., "File to write; a folder for a model."),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Write the codes of a store for other programs, or its model.

    Bits are packed as numpy.packbits does, the first bit highest.
    """
    from vdsh.export import FORMATS, export_codes
    from vdsh.persistence import MANIFEST
    from vdsh.progress import show_progress

    if Path(source, MANIFEST).is_file():
        raise InputError(f"'{source}' is a model, which holds no codes. Give a store.")
    if to not in (*FORMATS, "model"):
        raise InputError(f"--to must be one of {', '.join([*FORMATS, 'model'])}. Got '{to}'.")
    with vdsh.open_store(source, create=False) as store:
        if to == "model":
            model = store.model
            model.save(out, force=force)
            facts: dict[str, Any] = {"path": out, "terms": model.n_inputs, "bits": model.n_bits}
            line = f"Wrote {out}: a model of {model.n_bits} bits and {model.n_inputs:,} inputs."
        else:
            with show_progress("exporting", store.count(), enabled=not quiet) as show:
                done = export_codes(store, to, out, force=force, progress=show)
            facts, beside = done._asdict(), f", their ids in {done.ids}" if done.ids else ""
            line = f"Wrote {done.documents:,} codes to {done.path}{beside}."
    say(facts, line, as_json=as_json)


def map(
    store: str = options.STORE,
    limit: int = option(50_000, "Take a random sample of this size from a larger store."),
    seed: int = option(0, "The same seed gives the same map."),
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Compute the map of a store by t-SNE, once, and keep it in the store's folder."""
    from vdsh.store.addresses import short_name

    started = time.monotonic()
    made, path = make_map(store, limit=limit, seed=seed, quiet=quiet)
    n_documents, seconds = made.facts["documents"], time.monotonic() - started
    facts = {"map": str(path), "placed": len(made), "documents": n_documents, "seed": seed}
    share = f"{len(made):,} of {n_documents:,} documents, chosen by seed {seed}"
    placed = f"all {len(made):,} documents" if len(made) == n_documents else share
    lines = (
        f"Placed {placed}, in {seconds:.0f} s: {path}",
        f"Next: vdsh serve {short_name(store)}",
    )
    say(facts | {"seconds": round(seconds, 1)}, *lines, as_json=as_json)


def make_map(store: str, *, limit: int, seed: int, quiet: bool) -> "tuple[CorpusMap, Path]":
    """Compute and keep the map of a store, with a bar."""
    from vdsh import corpus_map
    from vdsh.progress import show_progress

    with (
        vdsh.open_store(store, create=False) as opened,
        show_progress("reading documents", enabled=not quiet) as show,
    ):
        folder = Path(opened.info()["path"])
        if not folder.is_dir():
            raise InputError(f"A map is kept in a store's folder, but '{store}' is none.")
        how: Any = {"progress": lambda name, done, total: show(done, total, name)}
        made = corpus_map.make_map(opened, limit=limit, seed=seed, **how)
    corpus_map.save(folder / corpus_map.FILE, made)
    return made, folder / corpus_map.FILE


def datasets(
    name: str | None = argument(None, "A data set, for all about it."),
    download: bool = option(False, "Download it into the cache, unless it is there.", "--download"),
    root: str | None = option(None, "Folder that holds corpora; by default $VDSH_DATA."),
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """List the data sets, or show the source, licence and local files of one."""
    from vdsh.paper.datasets import DATASETS, base, find

    if download and name is None:
        raise InputError(
            "Name the data set to download, such as: vdsh research datasets reuters --download"
        )
    chosen = list(DATASETS.values()) if name is None else [find(name)]
    if download:
        base.download(chosen[0], quiet=quiet)
    facts = [_facts(source, root) for source in chosen]
    head = ("name", "documents", "labels", "where", "licence")
    rows = [head, *(_row(fact) for fact in facts)] if name is None else _about(facts[0])
    say(facts, *columns(rows), as_json=as_json)


def _facts(source: "Source", root: str | None) -> dict[str, Any]:
    """Gather what is known of a data set; `where` is None where it is not here."""
    from vdsh.files import cache_folder
    from vdsh.paper.datasets.base import data_folder

    folders = [one / source.folder for one in (data_folder(root), cache_folder()) if one]
    here = [str(folder) for folder in folders if source.is_in(folder)]
    return {
        **{name: getattr(source, name) for name in _KNOWN},
        "files": [asdict(file) for file in source.files],
        "where": here[0] if here else None,
    }


def _row(fact: dict[str, Any]) -> tuple[str, ...]:
    sizes = (f"{fact['documents']:,}", f"{fact['labels']:,}")
    return fact["name"], *sizes, fact["where"] or "not here", fact["licence"]


def _about(fact: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give name and value of all that is known of a data set."""
    for name in _KNOWN:
        value = f"{fact[name]:,}" if name in ("documents", "labels") else fact[name]
        yield "used here" if name == "used" else name, value
    absent = f"not here; get it with: vdsh research datasets {fact['name']} --download"
    yield "where", fact["where"] or absent
    for file in fact["files"]:
        yield "file", ", ".join(filter(None, (file["name"], file["size"])))
        yield from (("  from", url) for url in file["urls"])
        yield "  sha256", file["sha256"] or "not published"
