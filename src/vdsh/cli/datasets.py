"""`vdsh datasets`: the corpora, where they come from and which are here."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vdsh.cli import options
from vdsh.cli.output import aligned, say
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.datasets import Source
    from vdsh.datasets.download import File

EXAMPLE = "Example: vdsh research datasets reuters --download"
_KNOWN = ("name", "title", "home", "documents", "labels", "licence", "citation", "used")


def command(
    name: Annotated[
        str | None, typer.Argument(help="A data set, for all about it.", show_default=False)
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download it into the cache, unless it is there.")
    ] = False,
    root: Annotated[
        str | None, typer.Option(help="Folder that holds corpora; by default $VDSH_DATA.")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the data sets, or show the source, licence and local files of one."""
    from vdsh.datasets import DATASETS, base, find

    if download and name is None:
        raise InputError(
            "Name the data set to download, such as: vdsh research datasets reuters --download"
        )
    chosen = list(DATASETS.values()) if name is None else [find(name)]
    if download:
        base.download(chosen[0], quiet=quiet)
    facts = [_facts(source, root) for source in chosen]
    if as_json:
        for fact in facts:
            say(fact, as_json=True)
    elif name is None:
        rows = [("name", "documents", "labels", "where", "licence"), *map(_row, facts)]
        say({}, *aligned(rows), as_json=False)
    else:
        say({}, *aligned(_about(facts[0])), as_json=False)


def _facts(source: "Source", root: str | None) -> dict[str, Any]:
    """Gather what is known of a data set; `where` is None where it is not here."""
    here = _whereabouts(source, root)
    files = sorted(here.iterdir()) if isinstance(here, Path) else []
    return {
        **{name: getattr(source, name) for name in _KNOWN},
        "files": [_file_facts(source, file) for file in source.files],
        "where": None if here is None else str(here),
        "at_hand": {
            path.name: path.stat().st_size
            for path in files
            if path.is_file() and path.name[0] != "."
        },
    }


def _whereabouts(source: "Source", root: str | None) -> Path | str | None:
    from vdsh.datasets.base import data_folder
    from vdsh.files import cache_folder

    if not source.layout:
        return "this machine"
    for folder in (data_folder(root), cache_folder()):
        if folder and source.is_in(folder / source.folder):
            return folder / source.folder
    return None


def _file_facts(source: "Source", file: "File") -> dict[str, Any]:
    from vdsh.datasets.download import recorded_sum
    from vdsh.files import cache_folder

    kept = cache_folder() / source.folder / file.name
    return {
        "name": file.name,
        "urls": file.urls,
        "size": file.size or None,
        "sha256": file.sha256,
        "sha256_of_first_download": None if file.sha256 else recorded_sum(kept),
        "downloaded": kept.exists(),
    }


def _row(fact: dict[str, Any]) -> tuple[str, ...]:
    sizes = (_count(fact["documents"]), _count(fact["labels"]))
    return fact["name"], *sizes, fact["where"] or "not here", fact["licence"]


def _about(fact: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give name and value of all that is known of a data set."""
    for name in _KNOWN:
        value = _count(fact[name]) if name in ("documents", "labels") else fact[name]
        yield "used here" if name == "used" else name, value
    absent = f"not here; get it with: vdsh research datasets {fact['name']} --download"
    yield "where", fact["where"] or absent
    yield from (("at hand", f"{name}, {size:,} bytes") for name, size in fact["at_hand"].items())
    for file in fact["files"]:
        yield "file", ", ".join(filter(None, (file["name"], file["size"])))
        yield from (("  from", url) for url in file["urls"])
        yield "  sha256", file["sha256"] or _unpublished(file)


def _unpublished(file: dict[str, Any]) -> str:
    first = file["sha256_of_first_download"]
    known = f"that of the first download is {first}" if first else "the first download's is kept"
    return f"not published; {known}, and later ones are checked against it"


def _count(number: int | None) -> str:
    return "varies" if number is None else f"{number:,}"
