"""How much memory is free, asked before much of it is taken."""

from pathlib import Path

from vdsh.errors import InputError

WORTH_ASKING = 1 << 28  # bytes


def free_memory() -> float:
    """Return the bytes that can be taken without swapping; infinity where the system is silent."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return float("inf")
    for line in lines:
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return float("inf")


def check_memory(what: str, n_bytes: int) -> None:
    """Raise where something takes more memory than is free."""
    if n_bytes < WORTH_ASKING:
        return
    free = free_memory()
    if n_bytes > free:
        raise InputError(
            f"{what} need {in_words(n_bytes)} of memory and {in_words(free)} are free. "
            "Divide them among several machines, or take shorter codes."
        )


def in_words(n_bytes: float) -> str:
    """Write a number of bytes for a person.

    >>> in_words(2_400_000_000), in_words(3_000_000)
    ('2.4 GB', '3 MB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"
