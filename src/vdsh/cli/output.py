"""Where a verb writes: standard output, or a file that appears whole or not at all."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import typer

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


def print_values(values: Mapping[str, float], n_bits: int) -> None:
    """Print what codes reach, beside what chance and exact tf-idf do."""
    sizes = {"exact tf-idf cosine": "  sparse floats", "codes": f"  {n_bits // 8} bytes"}
    for name, value in values.items():
        typer.echo(f"  {name:<20} {value:.3f}{sizes.get(name, '')}")
