"""`vdsh datasets`: the corpora, where they come from and which are here."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vdsh.cli import options
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.datasets import Source
    from vdsh.datasets.download import File

EXAMPLE = "Example: vdsh research datasets reuters --download"


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
            typer.echo(json.dumps(fact, ensure_ascii=False))
    elif name is None:
        _print_table(facts)
    else:
        _print_facts(facts[0])


def _facts(source: "Source", root: str | None) -> dict[str, Any]:
    """Gather what is known of a data set; `where` is None where it is not here."""
    here = _whereabouts(source, root)
    return {
        "name": source.name,
        "title": source.title,
        "documents": source.documents,
        "labels": source.labels,
        "licence": source.licence,
        "citation": source.citation,
        "home": source.home,
        "used": source.used,
        "files": [_file_facts(source, file) for file in source.files],
        "by_hand": [file.name for file in source.by_hand],
        "where": None if here is None else str(here),
        "at_hand": _at_hand(source, here),
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


def _at_hand(source: "Source", here: Path | str | None) -> dict[str, int]:
    """List the files of the corpus that are here, with their bytes."""
    if not isinstance(here, Path):
        return {}
    files = sorted(path for path in here.iterdir() if path.is_file() and path.name[0] != ".")
    return {path.name: path.stat().st_size for path in files}


def _print_table(facts: list[dict[str, Any]]) -> None:
    rows = [("name", "documents", "labels", "where", "licence")]
    for fact in facts:
        sizes = (_count(fact["documents"]), _count(fact["labels"]))
        rows.append((fact["name"], *sizes, fact["where"] or "not here", fact["licence"]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, documents, labels, where, licence in rows:
        typer.echo(
            f"{name:<{widths[0]}}  {documents:>{widths[1]}}  {labels:>{widths[2]}}  "
            f"{where:<{widths[3]}}  {licence}"
        )


def _print_facts(fact: dict[str, Any]) -> None:
    lines = [
        ("name", fact["name"]),
        ("title", fact["title"]),
        ("home", fact["home"]),
        ("documents", _count(fact["documents"])),
        ("labels", _count(fact["labels"])),
        ("licence", fact["licence"]),
        ("citation", fact["citation"]),
        ("used here", fact["used"]),
        (
            "where",
            fact["where"]
            or f"not here; get it with: vdsh research datasets {fact['name']} --download",
        ),
    ]
    lines += [("at hand", f"{name}, {size:,} bytes") for name, size in fact["at_hand"].items()]
    for file in fact["files"]:
        lines.append(("file", f"{file['name']}{', ' + file['size'] if file['size'] else ''}"))
        lines += [("  from", url) for url in file["urls"]]
        lines.append(("  sha256", file["sha256"] or _unpublished(file)))
    if fact["by_hand"]:
        names = ", ".join(fact["by_hand"])
        lines.append(("by hand", f"{names} from the home page are used if put into the cache"))
    for name, value in lines:
        typer.echo(f"{name:<9}  {value}")


def _unpublished(file: dict[str, Any]) -> str:
    first = file["sha256_of_first_download"]
    known = f"that of the first download is {first}" if first else "the first download's is kept"
    return f"not published; {known}, and later ones are checked against it"


def _count(number: int | None) -> str:
    return "varies" if number is None else f"{number:,}"
