"""Files that appear whole or not at all, several at once."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vdsh.errors import OutputExistsError, WriteError


@contextmanager
def drafts(*paths: Path, force: bool) -> Iterator[list[Path]]:
    """Give a draft beside each path; all are moved into place at the end, the first one last."""
    for path in paths:
        if path.exists() and not force:
            raise OutputExistsError(f"'{path}' exists. Choose another file or use --force.")
    made: list[Path] = []
    try:
        for path in paths:
            handle, name = tempfile.mkstemp(prefix=".vdsh-", suffix=path.suffix, dir=path.parent)
            os.close(handle)
            made.append(Path(name))
        yield made
        for draft, path in reversed(list(zip(made, paths, strict=True))):
            _finish(draft, path)
    except OSError as error:
        if isinstance(error, WriteError):
            raise
        reason = error.strerror or error
        raise WriteError(f"Could not write '{paths[0]}': {reason}. Nothing was left.") from error
    finally:
        for draft in made:
            draft.unlink(missing_ok=True)


def _finish(draft: Path, path: Path) -> None:
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.chmod(0o644)
    draft.replace(path)
