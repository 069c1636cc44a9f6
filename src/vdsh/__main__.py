"""`vdsh`, and `python -m vdsh`, are the command line."""

import gc


def main() -> None:
    """Run the command line."""
    # What is imported is no garbage, and looking for some takes a sixth of the imports' time. The
    # command line turns this on again.
    gc.disable()
    from vdsh import cli

    cli.main()


if __name__ == "__main__":
    main()
