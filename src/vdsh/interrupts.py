"""Ctrl-C while a process starts and ends: it leaves without a traceback."""

import os
import signal


def leave_on_interrupt() -> None:
    """Let Ctrl-C end the process at once, while nothing is open and nothing is written.

    `KeyboardInterrupt` would not do: in the middle of an import it passes through the code of
    others, which may show it or drop it. A process that ignores Ctrl-C goes on doing so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` again, so that work in progress can clean up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: object) -> None:
    os._exit(130)
