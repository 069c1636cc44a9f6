"""The exception tree: every error a user can cause derives from `VdshError` and a builtin.

A message says what is wrong, what was given and what to do. The command line prints a
`VdshError` as one line and exits with 1; anything else is a bug and keeps its traceback.
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class VdshError(Exception):
    """Base of all errors that vdsh raises on purpose."""


class InputError(VdshError, ValueError):
    """A setting or a document is not usable as given."""


class MissingFileError(VdshError, FileNotFoundError):
    """A file or folder that was named does not exist."""


class OutputExistsError(VdshError, FileExistsError):
    """The place to write to is already taken."""


class WriteError(VdshError, OSError):
    """Writing failed (disk full, no permission); nothing half-written was left."""


class DownloadError(VdshError, OSError):
    """A file could not be downloaded, or is not the file it should be."""


class EngineError(VdshError, ConnectionError):
    """A database server cannot be reached, or does not do what it was asked."""


class FolderError(VdshError, ValueError):
    """A model folder is damaged, incomplete, or made by a newer version."""


class DamageError(FolderError):
    """The database of a store is damaged, as it says itself."""


class GoneError(EngineError):
    """A store was removed or replaced while it was open."""


class MissingPackageError(VdshError, ImportError):
    """An optional package is needed for this."""


def missing_package(what: str, package: str, extra: str) -> MissingPackageError:
    """Make the error that names the extra to install.

    >>> str(missing_package("Training", "torch", "train"))
    "Training needs torch, which is not installed. Run: pip install 'vdsh[train]'"
    """
    return MissingPackageError(
        f"{what} needs {package}, which is not installed. Run: pip install 'vdsh[{extra}]'"
    )


@contextmanager
def needing(what: str, package: str, extra: str) -> Iterator[None]:
    """Import an optional package in the block: where it is missing, the extra is named."""
    try:
        yield
    except ImportError as error:
        if str(error.name).startswith("vdsh"):  # a mistake of ours
            raise
        raise missing_package(what, package, extra) from error


def suggest(name: str, known: Iterable[str]) -> str:
    """Say which known name may have been meant, or which there are.

    >>> suggest("vdsh_s", ["vdsh-s", "lsh"])
    "Did you mean 'vdsh-s'?"
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    return f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(names)}."
