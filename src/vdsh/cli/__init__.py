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
from vdsh.errors import VdshError

VERBS = """demo fit encode index search within delete duplicates info datasets evaluate recalibrate
    reproduce map serve explain sample copy export check backup restore
    compact reindex drift""".split()
HOMES = dict.fromkeys(("check", "compact", "backup", "restore"), "care")  # of several verbs
HOMES |= {"search": "search", "within": "search", "explain": "explain", "sample": "explain"}
_ASKING = ("search", "within", "info", "duplicates")


def make_app(verbs: Iterable[str] = VERBS) -> typer.Typer:
    """Put the command line together; a tenth of a second is saved where one verb is enough."""
    app = typer.Typer(
        name="vdsh",
        help="Turn texts into compact binary codes that keep meaning, and search them.",
        epilog="Example: vdsh fit news.jsonl --model vdsh-s --bits 32 --out news-model",
        no_args_is_help=True,
        add_completion=verbs is VERBS,  # asked for before a verb is named
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in verbs:
        verb: Any = import_module(f"vdsh.cli.{HOMES.get(name, name)}")
        kind = getattr(verb, "CLASS", None)
        example = verb.EXAMPLES[name] if name in HOMES else verb.EXAMPLE
        command = getattr(verb, name if name in HOMES else "command")
        app.command(name, epilog=example, cls=kind)(_guarded(command))
    app.callback(invoke_without_command=True)(_options)
    return app


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an error of ours into one line and exit code 1, Ctrl-C into 130."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except VdshError as error:
            typer.echo(f"Error: {error}", err=True)
            _drop_output()
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
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb in _ASKING:
        options.use_one_thread()
        gc.set_threshold(100_000)  # what is imported is no garbage: 25 milliseconds
    try:
        make_app([verb] if verb in VERBS else VERBS)(prog_name="vdsh")
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
