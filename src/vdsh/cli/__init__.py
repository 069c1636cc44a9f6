"""The command line: a file for a verb or a few, which parse, call the library and print."""

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module
from typing import Any

import typer

from vdsh import __version__
from vdsh.cli import options
from vdsh.cli.commands import Command, Group
from vdsh.errors import VdshError
from vdsh.interrupts import raise_on_interrupt

GROUPS = {  # in the order of `vdsh --help`, 20 verbs at most
    "Daily": "add search serve mcp learn info delete demo".split(),
    "Maintenance": "check backup restore compact reindex drift duplicates copy".split(),
    "Models kept apart": ["fit", "index"],
    "Research": ["reproduce", "research"],
}
# Of `vdsh research`; as a verb by itself, each is understood too, and not listed.
RESEARCH = "encode evaluate explain sample export map datasets".split()
# Of each verb in `vdsh --help`, where 80 columns leave it 62 characters.
SUMMARIES = {
    "add": "Add files and folders to a store, then learn codes from them.",
    "search": "Print the best documents for some words, with a passage each.",
    "serve": "Serve stores over HTTP: a JSON API and a page.",
    "mcp": "Give stores to an assistant (Model Context Protocol).",
    "learn": "Learn codes from the documents of a store.",
    "info": "Print the facts about a store, or about a model folder.",
    "delete": "Delete documents by id.",
    "demo": "Make a store of the installed packages' docstrings.",
    "check": "Check a store for damage.",
    "backup": "Write a snapshot of a store to one file.",
    "restore": "Make a store of a backup, in a new folder.",
    "compact": "Give back the space of deleted and replaced documents.",
    "reindex": "Encode all documents of a store with another model.",
    "drift": "Check whether new documents differ from those learned from.",
    "duplicates": "Print groups of documents with nearly the same text.",
    "copy": "Copy documents and codes from one store to another.",
    "fit": "Learn a model from documents and write it to a folder.",
    "index": "Add documents to a store, with the model of a folder.",
    "reproduce": "Run the missing cells of a table or figure, and print it.",
    "research": "Look inside models and codes, with commands of its own.",
    "encode": "Print the id and the code of each document.",
    "evaluate": "Measure a model or a store by labels or by queries.",
    "explain": "Print the words behind each bit, or behind a text's code.",
    "sample": "Print word distributions drawn from a model.",
    "export": "Write the codes of a store for other programs, or its model.",
    "map": "Compute the map of a store by t-SNE, and keep it.",
    "datasets": "List the data sets, or say where they come from.",
}
VERBS = [name for names in GROUPS.values() for name in names] + RESEARCH
_FILES = {  # of several verbs
    "maintenance": "info check backup restore compact reindex drift copy",
    "research": "export map datasets",
    "explain": "explain sample",
    "cleanup": "delete duplicates",
    "serve": "serve mcp",
    "add": "add learn",
}
HOMES = {verb: file for file, verbs in _FILES.items() for verb in verbs.split()}
_ASKING = ("search", "info", "duplicates")


class _Grouped(Group):
    """Verbs under the headings of their groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the help's list of verbs."""
        for title, names in GROUPS.items():
            some = [name for name in names if name in self.commands]
            if some:
                with formatter.section(title):
                    formatter.write_dl([(n, self.commands[n].get_short_help_str(80)) for n in some])


def make_app(verbs: Iterable[str] = VERBS) -> typer.Typer:
    """Put the command line together; a tenth of a second is saved where one verb is enough."""
    app = _group(
        "vdsh",
        "Search texts by words and by meaning: each becomes a compact binary code.",
        "Example: vdsh add notes ~/notes, then: vdsh search notes some words",
        cls=_Grouped,
        add_completion=verbs is VERBS,  # asked for before a verb is named
    )
    research = _group(
        "research",
        "Look inside models and codes: encode, evaluate, explain, export and more.",
        "Example: vdsh research evaluate news-model 20newsgroups",
    )
    for name in verbs:
        if name == "research":
            app.add_typer(research, short_help=SUMMARIES[name])
            continue
        verb: Any = import_module(f"vdsh.cli.{HOMES.get(name, name)}")
        example = verb.EXAMPLES[name] if name in HOMES else verb.EXAMPLE
        command = _guarded(getattr(verb, name if name in HOMES else "command"))
        options: dict[str, Any] = {
            "epilog": example,
            "cls": getattr(verb, "CLASS", Command),
            "short_help": SUMMARIES[name],
        }
        app.command(name, hidden=name in RESEARCH, **options)(command)
        if name in RESEARCH:
            research.command(name, **options)(command)
    app.callback(invoke_without_command=True)(_options)
    return app


def _group(name: str, help: str, example: str, **options: Any) -> typer.Typer:
    return typer.Typer(
        name=name,
        help=help,
        epilog=example,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **{"cls": Group, **options},
    )


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an error of ours into one line and exit code 1, Ctrl-C into 130."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            raise_on_interrupt()
            command(*arguments, **options)
        except VdshError as error:
            typer.echo(f"Error: {error}", err=True)
            _drop_output()
            raise typer.Exit(1) from error
        except MemoryError as error:
            why = "There is not enough memory. Give fewer documents: vdsh fit has --sample N."
            typer.echo(f"Error: {why}", err=True)
            raise typer.Exit(1) from error
        except BrokenPipeError as error:  # the reader of our output went away, as `head` does
            _drop_output()
            raise typer.Exit(0) from error
        except KeyboardInterrupt as error:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(130) from error

    return run


def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    if version:
        typer.echo(f"vdsh {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line."""
    warnings.showwarning = _show_warning
    verb, inner = [*sys.argv[1:3], "", ""][:2]
    if verb in _ASKING:
        options.use_one_thread()
        gc.set_threshold(100_000)  # what is imported is no garbage: 25 milliseconds
    gc.enable()  # see `vdsh.__main__`
    try:
        named = [verb, inner] if verb == "research" and inner in RESEARCH else [verb]
        is_enough = verb in VERBS and (verb != "research" or inner in RESEARCH)
        make_app(named if is_enough else VERBS)(prog_name="vdsh")
    finally:
        gc.freeze()  # all goes with the process: searching it for garbage took 0.3 s with numba


def __getattr__(name: str) -> Any:
    if name == "app":
        return make_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that a broken output does not fail again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning as a sentence, without the line of code it comes from."""
    typer.echo(f"Warning: {message}", err=True)
