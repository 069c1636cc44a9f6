"""Where a verb writes: standard output, or a file that appears whole or not at all."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from vdsh.errors import VdshError, WriteError
from vdsh.files import check_new, new_file


@contextmanager
def output(path: str | None, *, force: bool) -> Iterator[TextIO]:
    """Give a file to write to; one with a name appears whole or not at all."""
    if path is None:
        try:
            yield sys.stdout
            sys.stdout.flush()
        except (BrokenPipeError, VdshError):  # some of our errors are OSErrors too
            raise
        except OSError as error:
            raise WriteError(f"Could not write to standard output: {error.strerror}.") from error
        return
    check_new(path, force=force)
    with new_file(Path(path)) as draft, draft.open("w", encoding="utf-8") as file:
        yield file
