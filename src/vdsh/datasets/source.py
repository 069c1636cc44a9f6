"""Where a corpus comes from, and how it gets here: a record for each, a cache for all."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vdsh.datasets.base import Corpus
from vdsh.datasets.download import File, fetch
from vdsh.errors import MissingFileError


@dataclass(frozen=True)
class Source:
    """What is known about a corpus.

    Attributes
    ----------
    name, title : str
    home : str
        The page that publishes it.
    licence, citation : str
    used : str
        Which version, and what of it, `load` gives.
    documents, labels : int, optional
        As published, complete; None where it depends on the machine.
    read : callable
        Reads the corpus from its folder.
    folder : str
        Its folder below the data folder or the cache; "" for a corpus that needs none.
    layout : tuple of str
        Files of which one is the corpus, the preferred first.
    files : tuple of File
        The original files, to be downloaded.
    by_hand : tuple of File
        Original files in a better format that have no direct address. Where all of them were put
        into the cache folder, they are parsed in place of `files`.
    parse : callable, optional
        Turns the original files in a folder into one of `layout`.
    """

    name: str
    title: str
    home: str
    licence: str
    citation: str
    used: str
    documents: int | None
    labels: int | None
    read: Callable[[Path], Corpus]
    folder: str = ""
    layout: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    by_hand: tuple[File, ...] = ()
    parse: Callable[[Path], None] | None = None

    def is_in(self, folder: Path) -> bool:
        """Tell whether a folder holds the corpus, ready to be read."""
        return not self.layout or any((folder / name).is_file() for name in self.layout)


def data_folder(root: str | os.PathLike[str] | None) -> Path | None:
    """Settle the data folder: what was given, else the environment variable VDSH_DATA."""
    chosen = root or os.environ.get("VDSH_DATA")
    return Path(chosen) if chosen else None


def cache_folder() -> Path:
    """Give the folder of downloads: VDSH_CACHE, $XDG_CACHE_HOME/vdsh or ~/.cache/vdsh."""
    if chosen := os.environ.get("VDSH_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vdsh"


def locate(source: Source, root: str | os.PathLike[str] | None, *, quiet: bool) -> Path:
    """Find the folder of a corpus; without a data folder it is downloaded into the cache."""
    if not source.layout:
        return Path()
    given = data_folder(root)
    if given is None:
        return download(source, quiet=quiet)
    folder = given / source.folder
    if not source.is_in(folder):
        wanted = " or ".join(f"'{folder / name}'" for name in source.layout)
        raise MissingFileError(
            f"The corpus '{source.name}' is not here: no {wanted}. Give the folder that holds it "
            "with root= or the environment variable VDSH_DATA, or neither to download it."
        )
    return folder


def download(source: Source, *, quiet: bool = False) -> Path:
    """Download and parse a corpus into the cache unless it is there; return its folder."""
    folder = cache_folder() / source.folder
    if source.is_in(folder) or source.parse is None:
        return folder
    by_hand = bool(source.by_hand) and all((folder / file.name).exists() for file in source.by_hand)
    for file in source.by_hand if by_hand else source.files:
        fetch(file, folder, home=source.home, quiet=quiet)
    source.parse(folder)
    return folder
