"""Texts to try, which the page offers: a file of lines in the store's folder."""

from pathlib import Path

FILE = "examples.txt"
MOST, LONGEST = 8, 200  # lines, and characters of each


def read(folder: str) -> list[str]:
    """Read the examples of a store; none where it has no such file, or no folder."""
    try:
        lines = (Path(folder) / FILE).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    return [line.strip()[:LONGEST] for line in lines if line.strip()][:MOST]


def write(folder: str | Path, texts: list[str]) -> None:
    """Leave examples in a store's folder."""
    (Path(folder) / FILE).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
