"""`vdsh mcp`: stores as tools of an assistant."""

from vdsh.cli.serve import PACKAGES, Names, Stores, Writable, check_packages

EXAMPLE = "Example: claude mcp add notes -- vdsh mcp notes-store"


def command(stores: Stores, names: Names = None, writable: Writable = False) -> None:
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
