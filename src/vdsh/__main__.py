"""`python -m vdsh` is the command line."""

from vdsh.cli import main

if __name__ == "__main__":
    main()
