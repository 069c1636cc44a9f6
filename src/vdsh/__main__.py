"""The command line, as `vdsh` and as `python -m vdsh`."""

import gc
import os


def main() -> None:
    """Run the command line; Ctrl-C leaves no traceback while it starts, runs or ends."""
    try:
        from vdsh.interrupts import leave_on_interrupt

        leave_on_interrupt()
    except KeyboardInterrupt:
        os._exit(130)
    # What is imported is no garbage, and looking for some takes a sixth of the imports' time. The
    # command line turns this on again.
    gc.disable()
    from vdsh.cli import main as run  # a quarter of a second, in which people press Ctrl-C

    try:
        run()
    finally:
        leave_on_interrupt()


if __name__ == "__main__":
    main()
