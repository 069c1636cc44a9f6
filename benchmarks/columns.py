"""How a table is declared: rows of a result, and a template for each column."""

import string
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from common import RESULTS, markdown, read

Row = dict[str, Any]
Cell = str | Callable[[Row], str]


class Table(NamedTuple):
    """A column for each heading: a template for the fields of a row, or a function of it.

    Attributes
    ----------
    rows : str, or callable
        `results/NAME.json`, whose `rows` they are; or what returns them.
    columns : dict of str to str or callable
    tight : bool
        Without spaces in the ruler.
    about : str
        What stands above.
    """

    rows: str | Callable[[], Iterable[Row]]
    columns: dict[str, Cell]
    tight: bool = False
    about: str = ""

    def __call__(self) -> str:
        """Write it."""
        rows = read(self.rows)["rows"] if isinstance(self.rows, str) else self.rows()
        lines = [[shown(cell, row) for cell in self.columns.values()] for row in rows]
        return self.about + markdown(list(self.columns), lines, tight=self.tight)


class _Format(string.Formatter):
    """Digits that count: `{x:three}`, `{x:two}`, or a decimal below ten: `{x:one}`."""

    def format_field(self, value: Any, spec: str) -> str:
        if spec == "three":
            spec = ",.0f" if value >= 100 else ".3g"
        elif spec in ("one", "two"):
            spec = ",.0f" if value >= 10 else ".1f" if spec == "one" else ".2g"
        return super().format_field(value, spec)


def shown(cell: Cell, row: Row) -> str:
    """Fill one cell."""
    return cell(row) if callable(cell) else _Format().vformat(cell, (), row)


def maybe(template: str, otherwise: str = "") -> Cell:
    """Leave a cell empty where the row lacks a field."""

    def cell(row: Row) -> str:
        try:
            return shown(template, row)
        except KeyError:
            return otherwise

    return cell


def facts(row: Row, head: Sequence[str], lines: Iterable[Sequence[str]], *, tight=False) -> str:
    """Write a line for each fact of one result, its cells as templates."""
    return markdown(head, [[shown(cell, row) for cell in line] for line in lines], tight=tight)


def of_all(pattern: str) -> list[Row]:
    """Read all results of a name."""
    return [read(path.stem) for path in sorted(RESULTS.glob(f"{pattern}.json"))]


def named(found: dict[str, Any], names: dict[str, str] | None = None) -> list[Row]:
    """Make a row of each entry, with its name, or the one given."""
    return [{"name": (names or {}).get(name, name)} | row for name, row in found.items()]
