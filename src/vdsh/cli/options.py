"""Options that several verbs share, and how documents are read with them."""

import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_type_hints

import typer

from vdsh.cli.commands import Command
from vdsh.errors import InputError

if TYPE_CHECKING:
    from io import BufferedReader

    from vdsh.documents import Document
    from vdsh.store import Store


def option(default: Any, help: str, *names: str, **more: Any) -> Any:
    """Describe an option, which is called as its parameter unless it has other names."""
    return typer.Option(default, *names, help=help, **more)


def argument(default: Any, help: str, **more: Any) -> Any:
    """Describe an argument."""
    return typer.Argument(default, help=help, show_default=False, **more)


def find_store(given: Any) -> Any:
    """Find the stores that were named, and say so where that may surprise."""
    from vdsh.store.addresses import find_place

    if not isinstance(given, str):
        return None if given is None else [find_store(one) for one in given]
    try:
        place = find_place(given)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error
    if place.hint:
        typer.echo(place.hint, err=True)
    return place.path


def named(store: "Store") -> str:
    """Write where a store is, as a person would name it."""
    from vdsh.store.addresses import short_name

    return short_name(store.path)


_DOCS = (
    "JSONL, CSV, TSV, Parquet or text file (gz or plain), a folder of text files, or - for stdin."
)
DOCS, OPTIONAL_DOCS = argument(..., _DOCS), argument(None, _DOCS)
_STORE = "Name, folder or URL of the store."
STORE = argument(..., _STORE, callback=find_store)
STORE_OPTION = option(..., _STORE, "--store", callback=find_store)
DEVICE = option("cpu", "Device that searches codes: cpu, or cuda (a GPU; needs torch).")
JSON = option(False, "Print JSON lines for programs.", "--json")
QUIET = option(False, "Show no progress.", "--quiet", "-q")
FORCE = option(False, "Overwrite existing output.", "--force")

Documents = AbstractContextManager[Iterator["Document"]]


class Reading(NamedTuple):
    """The options that say how documents are read; `reads_documents` gives them to a verb."""

    format: str | None = option(
        None, "jsonl, csv, tsv, parquet or text; by default from the file name."
    )
    id_field: str = option("id", "Field of the id; by default file and number.")
    text_field: list[str] | None = option(
        None, "Field of the text; repeat to join several.  [default: text]"
    )
    labels_field: str = option("labels", "Field of the labels.")
    drop_field: list[str] | None = option(None, "Field to leave out; repeat for several.")
    encoding: str = option("utf-8", "Encoding of what is neither UTF-8 nor has a byte order mark.")
    delimiter: str | None = option(None, "Delimiter of CSV; by default detected from the header.")
    html: bool = option(
        False, "Texts are HTML: leave out tags, decode entities.", "--html/--no-html"
    )
    max_document_size: int = option(16 * 2**20, "Maximum bytes per document.", min=1)
    follow: bool = option(False, "Follow links that lead out of a folder.", "--follow/--no-follow")
    quiet: bool = QUIET

    def how(self) -> dict[str, Any]:
        """Give what `read_documents` takes."""
        given = self._asdict() | {"drop_field": self.drop_field or ()}
        del given["quiet"]
        return given

    def stream(self, source: str, doing: str = "reading") -> Documents:
        """Read documents one by one, with a bar."""
        from vdsh.documents import read_documents
        from vdsh.progress import reading_bar

        how = self.how() | {"text_field": self.text_field or "text"}
        return reading_bar(read_documents(source, **how), doing, enabled=not self.quiet)

    def documents(self, source: str) -> "list[Document]":
        """Read all documents."""
        with self.stream(source) as documents:
            return list(documents)

    def draw(self, source: str, most: int | None) -> "tuple[list[tuple[Document, int]], int]":
        """Read all documents; keep some at random, with their numbers, and count all.

        Without a number as many are kept as a model learns from by default.
        """
        from vdsh.documents.document import draw, length

        how: Any = {"most": most} if most else {"size": lambda pair: length(pair[0])}
        numbers = count()
        with self.stream(source) as documents:
            return draw(zip(documents, numbers, strict=False), **how), next(numbers)


def given_options(context: typer.Context) -> set[str]:
    """Return the names of the options that are on the command line, also with their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}


BY_DEFAULT = Reading(*(each.default for each in Reading._field_defaults.values()))


def reads_documents(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a verb's parameter `reading` by an option for each field of `Reading`.

    The last one, `--quiet`, is the verb's last one too.
    """
    kinds = get_type_hints(Reading)
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
        for name, default in Reading._field_defaults.items()
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        reading = Reading(**{option.name: given.pop(option.name) for option in options})
        command(reading=reading, **given)

    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        own = parameter.replace(kind=Parameter.KEYWORD_ONLY)
        parameters += options[:-1] if parameter.name == "reading" else [own]
    parameters.append(options[-1])
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


class WordsCommand(Command):
    """A command that takes a query word by word, such as mars -rover."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Tell click which arguments with a dash are words and not options."""
        options = {name for param in self.params for name in param.opts}
        return super().parse_args(ctx, move_words(args, options))


def move_words(args: list[str], options: Collection[str]) -> list[str]:
    """Put words with a dash behind all options.

    >>> move_words(["store", "mars", "-rover", "-k", "5", "-k5"], ["-k", "--json"])
    ['store', 'mars', '-k', '5', '-k5', '--', '-rover']
    """
    end = args.index("--") if "--" in args else len(args)
    short = {arg for arg in args if arg[:2] in options and arg[2:].isdecimal()}  # such as -k5
    dashed = [arg for arg in args[:end] if re.match("-[^-]{2}", arg) and arg not in short]
    for word in dashed:
        if f"-{word}" in options:
            raise typer.BadParameter(
                f"There is no option {word}. Did you mean -{word}? To leave out documents with "
                f"that word, write it after two dashes: -- {word}."
            )
    return [arg for arg in args[:end] if arg not in dashed] + ["--", *dashed, *args[end + 1 :]]


def read_lines() -> Iterator[list[str]]:
    """Read queries from standard input, one a line, as many at a time as have come."""
    data, number, ended = b"", 0, False
    while not ended:
        new = cast("BufferedReader", sys.stdin.buffer).read1(1 << 16)
        ended = not new
        *lines, data = (data + new + (b"\n" if ended else b"")).split(b"\n")
        texts = []
        for line in lines:
            number += 1
            try:
                texts.append(line.decode("utf-8-sig" if number == 1 else "utf-8").strip())
            except UnicodeDecodeError as error:
                raise InputError(f"Line {number} of standard input is not UTF-8.") from error
        if queries := [text for text in texts if text]:
            yield queries


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Read `--set name=value` options; values are JSON or Python's words, else text.

    >>> parse_settings(["epochs=5", "threshold=sign", "stop_words=None"])
    {'epochs': 5, 'threshold': 'sign', 'stop_words': None}
    """
    words = {"None": None, "True": True, "False": False}
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--set takes name=value, such as --set epochs=5. Got '{pair}'.")
        try:
            settings[name.replace("-", "_")] = words[value] if value in words else json.loads(value)
        except ValueError:
            settings[name.replace("-", "_")] = value
    return settings


def use_one_thread() -> None:
    """Tell OpenBLAS, before it is loaded: one text is no work for threads, which spin and wait."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
