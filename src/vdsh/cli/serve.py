"""`vdsh serve` and `mcp`: stores over HTTP, and as tools of an assistant."""

import typer

from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.errors import needing

EXAMPLES = {
    "serve": "Example: vdsh serve news-store --workers 2",
    "mcp": "Example: claude mcp add notes -- vdsh mcp notes-store",
}
PACKAGES = ("fastapi", "uvicorn", "httptools", "prometheus_client", "fastapi_offline")
_STORES = argument(..., "Names, folders or URLs of stores.", callback=options.find_store)


def find_named(given: list[str] | None) -> list[str] | None:
    """Find the stores of NAME=STORE."""
    pairs = [text.partition("=") for text in given or ()]
    return [name + equals + (equals and options.find_store(store)) for name, equals, store in pairs]


_NAMES = option(
    None,
    "NAME=STORE: what a store is called; by default the name of its folder. Repeat for several.",
    "--as",
    callback=find_named,
)
_WRITABLE = option(False, "Allow clients to write and delete documents.", "--writable")


def serve(
    stores: list[str] = _STORES,
    names: list[str] | None = _NAMES,
    host: str = option("127.0.0.1", "Address to listen on; beyond this machine a token is needed."),
    port: int = option(8000, "Port; 0 takes a free one.", min=0, max=65535),
    workers: int = option(1, "Processes, each with the store open.", min=1),
    writable: bool = _WRITABLE,
    token_file: str | None = option(
        None,
        "File with the token that clients must send, or one line per token: NAME read|write "
        "TOKEN. Changes take effect at once. Or set VDSH_TOKEN.",
    ),
    tls_cert: str | None = option(None, "Certificate in PEM format, to serve HTTPS."),
    tls_key: str | None = option(None, "Its key, without a password."),
    max_k: int = option(1000, "Maximum hits of a search.", min=1),
    max_batch: int = option(1000, "Maximum texts of a call.", min=1),
    max_text: int = option(200_000, "Maximum characters of a text.", min=1),
    max_body: int = option(4 * 2**20, "Maximum bytes of a body.", min=1),
    timeout: float = option(30, "Seconds for an answer.", min=0.01),
    client_timeout: float = option(20, "Seconds for a client to send its request.", min=0.01),
    device: str = options.DEVICE,
    quiet: bool = option(False, "Do not log requests.", "--quiet", "-q"),
) -> None:
    """Serve stores over HTTP: search, encode and explain as JSON, and a page.

    Each store is served under /v1/stores/NAME/, the first one also under /v1/; to assistants all
    of them under /mcp, where the extra `mcp` is installed.

    Requests are logged to standard error as JSON lines.
    """
    check_packages()
    from vdsh.server.bodies import Limits
    from vdsh.server.run import Settings, check_tls
    from vdsh.server.run import serve as run
    from vdsh.server.service import name_stores
    from vdsh.server.tokens import read_tokens
    from vdsh.store import without_password
    from vdsh.store.addresses import short_name

    limits = Limits(
        max_k, max_batch, max_text, max_body, seconds=timeout, client_seconds=client_timeout
    )
    named = name_stores(stores, names or [])
    tokens, tls = read_tokens(token_file), check_tls(tls_cert, tls_key)
    settings = Settings(named, writable, tokens, limits, not quiet, tls, device)

    def started(address: str, n_documents: dict[str, int]) -> None:
        shown = {name: f"'{short_name(without_password(store))}'" for name, store in named.items()}
        if len(named) == 1:
            for name, number in n_documents.items():
                typer.echo(f"Serving {number:,} documents of {shown[name]} at {address}")
        else:
            typer.echo(f"Serving {len(named)} stores at {address}")
            for name, number in n_documents.items():
                typer.echo(f"  /v1/stores/{name}/  {number:,} documents of {shown[name]}")
        typer.echo("The page is at /, the API at /docs. Ctrl-C stops.")

    run(settings, host, port, workers, started)


def mcp(
    stores: list[str] = _STORES, names: list[str] | None = _NAMES, writable: bool = _WRITABLE
) -> None:
    """Give stores to an assistant: the Model Context Protocol on standard input and output.

    An assistant starts this command itself: put it into its settings. It can search, read
    documents, list stores and find more documents like one. `vdsh serve` offers the same over
    HTTP, under /mcp.
    """
    import asyncio
    import signal

    check_packages(("mcp", *PACKAGES), extra="mcp")
    from vdsh.server.mcp import serve_stdio
    from vdsh.server.service import make_services, name_stores

    services = make_services(name_stores(stores, names or []), writable=writable)
    # A thread waits for input and would keep a process that is interrupted.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(serve_stdio(services))


def check_packages(packages: tuple[str, ...] = PACKAGES, extra: str = "server") -> None:
    """Look for the packages without importing them: only workers need them all."""
    from importlib.util import find_spec

    for package in packages:
        with needing("The server", package.replace("_", "-"), extra):
            if find_spec(package) is None:
                raise ImportError(name=package)
