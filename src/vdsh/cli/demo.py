"""`vdsh demo`: the whole way on real text, offline: the docstrings of the installed packages."""

import shutil
import time
from pathlib import Path

import typer

import vdsh
from vdsh.cli import options
from vdsh.cli.options import option
from vdsh.cli.output import fields_of, print_answer, print_values, say

EXAMPLE = "Example: vdsh demo --out my-demo"
_QUERIES = (
    "solve a system of linear equations",
    "wait until a task is done",
    "copy a directory tree",
)
_ON_THE_MAP = 5000  # documents; half a minute on two cores


def command(
    out: str = option("vdsh-demo", "Folder for store and documents."),
    serve: bool = option(False, "Then serve the page; an existing demo is used.", "--serve"),
    port: int = option(8000, "Port to serve on; 0 takes a free one."),
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Add the docstrings of the installed packages to a store, learn from them and search."""
    from vdsh.cli import make_app, research
    from vdsh.cli import serve as service
    from vdsh.corpus_map import FILE

    if serve:
        service.check_packages()  # before minutes of training
        service.check_packages(("openTSNE",), "plots")
    if not serve or not (Path(out) / "store" / "store.sqlite").exists():
        _run(out, as_json=as_json, quiet=quiet)
    if serve:
        if not Path(out, "store", FILE).exists():
            research.make_map(f"{out}/store", limit=_ON_THE_MAP, seed=0, quiet=quiet)
        make_app(["serve"])(["serve", f"{out}/store", "--port", str(port), "--quiet"])


def _run(out: str, *, as_json: bool, quiet: bool) -> None:
    """Go the whole way from texts to searches, as `vdsh add` does."""
    from vdsh.adding import add_files
    from vdsh.documents import docstrings
    from vdsh.documents.writer import write_documents
    from vdsh.model.card import describe_measure
    from vdsh.progress import show_progress

    started = time.monotonic()
    path = Path(out, "store")
    path.parent.mkdir(parents=True, exist_ok=True)
    with show_progress("reading source files", enabled=not quiet) as show:
        every = docstrings.collect(progress=show)
    public = (one for one in every if "._" not in one.id.removeprefix(one.metadata["module"]))
    corpus = Path(out, "documents.jsonl.gz")
    write_documents(corpus, public)
    if (path / "store.sqlite").exists():
        shutil.rmtree(path)
    with vdsh.open_store(path) as store:
        with show_progress("adding", enabled=not quiet) as show:
            found = add_files(store, [corpus], progress=show)
        if not as_json:
            typer.echo(
                f"Added {found.added:,} docstrings of installed packages; words find them now. "
                "Learning codes from them."
            )
        store.learn(random_state=0, progress=not quiet)
        # The page offers these as texts to try.
        (path / "examples.txt").write_text("\n".join(_QUERIES), encoding="utf-8")
        searches = dict(zip(_QUERIES, store.search_many(_QUERIES, k=3), strict=True))
        quality, n_bits = store.model.training["quality"], store.n_bits
    seconds = time.monotonic() - started
    if as_json:
        facts = {"store": str(path), "documents": str(corpus), "quality": quality}
        shown = [{"query": one, "hits": fields_of(hits, one)} for one, hits in searches.items()]
        say(facts | {"searches": shown, "seconds": round(seconds)}, as_json=True)
        return
    typer.echo(f"\n{describe_measure(quality)}:")
    print_values(quality["values"], n_bits)
    typer.echo(f"\nWords and codes together, over all {found.added:,}:\n")
    for query, hits in searches.items():
        print_answer(query, hits, as_json=False)
    place = "" if out == "vdsh-demo" else f" --out {out}"
    typer.echo(
        f"Done in {seconds:.0f} s. Store and documents are in {out}. Try next:\n"
        f"  vdsh search {path} probability density of a distribution\n"
        f"  vdsh demo --serve{place}   # the page: search, bits, a map\n"
        f"  vdsh duplicates {path}\n"
        "  vdsh add notes YOUR_FOLDER"
    )
