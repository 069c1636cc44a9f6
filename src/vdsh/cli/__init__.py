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
from typer.core import TyperGroup

from vdsh import __version__
from vdsh.cli import options
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


class _Grouped(TyperGroup):
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
            app.add_typer(research)
            continue
        verb: Any = import_module(f"vdsh.cli.{HOMES.get(name, name)}")
        example = verb.EXAMPLES[name] if name in HOMES else verb.EXAMPLE
        command = _guarded(getattr(verb, name if name in HOMES else "command"))
        options = {"epilog": example, "cls": getattr(verb, "CLASS", None)}
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
        **options,
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
