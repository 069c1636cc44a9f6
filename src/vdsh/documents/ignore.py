"""Patterns as a `.gitignore` has them; of several that fit, the last decides.

A path and a pattern are compared name by name, so the time is at most their lengths multiplied.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

_ANY_FOLDERS = "**"
_SPECIAL = frozenset("*?[]\\")


class _Rule(NamedTuple):
    brings_back: bool
    folders_only: bool
    globs: tuple[str, ...]  # one for each name of a path, or `**`

    @property
    def is_by_name(self) -> bool:
        """Say whether it asks for the last name of a path alone, as most rules do."""
        return len(self.globs) == 2 and self.globs[0] == _ANY_FOLDERS


class Patterns:
    """Say which files and folders to leave out; what is below such a folder is never asked for.

    >>> rules = Patterns(["*.log", "!keep.log", "build/", "/docs/**/old"])
    >>> [rules.leave_out(path) for path in ("a/x.log", "keep.log", "build/", "docs/old", "build")]
    [True, False, True, True, None]
    """

    def __init__(self, lines: Iterable[str]) -> None:
        rules = [rule for line in lines if (rule := _read_rule(line))]
        self._rules = list(dict.fromkeys(reversed(rules)))
        # Most rules are for names alone, and most names fit none: one look instead of sixty.
        by_name = {rule.globs[1]: None for rule in self._rules if rule.is_by_name}
        self._plain_names = set(filter(_is_plain, by_name))
        expressions = [_expression(glob) for glob in by_name if not _is_plain(glob)]
        self._names = re.compile("|".join(expressions) or "(?!)")
        self._paths = [rule.globs for rule in self._rules if not rule.is_by_name]

    def leave_out(self, path: str) -> bool | None:
        """Say whether to leave out a path (that of a folder ends in `/`); None: no rule fits."""
        names = path.rstrip("/").split("/")
        by_name = names[-1] in self._plain_names or self._names.match(names[-1])
        if not by_name and not any(_fit(names, globs) for globs in self._paths):
            return None
        for rule in self._rules:
            if (path[-1] == "/" or not rule.folders_only) and _fits(names, rule):
                return not rule.brings_back
        return None

    def fits_inside(self, path: str) -> bool:
        """Say whether a rule fits a path, or a folder that it is in."""
        ends = [place.end() for place in re.finditer(r"/|.\Z", path)]
        return any(self.leave_out(path[:end]) for end in ends)


def _read_rule(line: str) -> _Rule | None:
    """Read a line; None where it is empty or a comment."""
    line = _without_spaces_behind(line.rstrip("\r\n"))
    brings_back = line[:1] == "!"
    body = line.removeprefix("!").rstrip("/")
    if not body or line[0] == "#":
        return None
    segments = re.sub(r"(\*\*/)+", "**/", body.removeprefix("/")).split("/")
    if "/" not in body:
        segments = [_ANY_FOLDERS, *segments]
    if segments[-1] == _ANY_FOLDERS:
        segments.append("*")
    return _Rule(brings_back, line[-1] == "/", tuple(segments))


def _without_spaces_behind(line: str) -> str:
    """Leave out spaces at the end, but for one with a backslash before it."""
    short = line.rstrip(" ")
    return line[: len(short) + 1] if short.endswith("\\") else short


def _expression(glob: str) -> str:
    """Write the pattern for a name as a regular expression."""
    glob = re.sub(r"\\([*?\[])", r"[\1]", glob)
    glob = re.sub(r"\\(.)", r"\1", glob)
    # A bracket that is never closed stands for itself; `fnmatch` would look for its end each time.
    closed = glob.rfind("]") + 1
    expression = fnmatch.translate(glob[:closed] + glob[closed:].replace("[", "[[]"))
    return expression.replace(r"[\[]", r"\[")


@lru_cache(10_000)
def _matcher(glob: str) -> Callable[[str], object]:
    """Return a function that says whether a name fits."""
    return glob.__eq__ if _is_plain(glob) else re.compile(_expression(glob)).match


def _is_plain(glob: str) -> bool:
    return _SPECIAL.isdisjoint(glob)


def _fits(names: Sequence[str], rule: _Rule) -> bool:
    if rule.is_by_name:
        return bool(_matcher(rule.globs[1])(names[-1]))
    return _fit(names, rule.globs)


def _fit(names: Sequence[str], globs: Sequence[str]) -> bool:
    """Say whether a path fits: each `**` stands for as few folders as will do.

    Where names behind a `**` do not fit, that one takes a folder more. Earlier ones need not be
    tried again: with fewer folders in between they could only leave more to the last.
    """
    n_fitting = 0  # globs
    at = 0
    last_any = -1  # the place of the last `**` that was met, and of the first name behind it
    behind_any = 0
    while at < len(names):
        glob = globs[n_fitting] if n_fitting < len(globs) else None
        if glob == _ANY_FOLDERS:
            last_any = n_fitting
            behind_any = at
            n_fitting += 1
        elif glob is not None and _matcher(glob)(names[at]):
            n_fitting += 1
            at += 1
        elif last_any >= 0:
            n_fitting = last_any + 1
            behind_any += 1
            at = behind_any
        else:
            return False
    return n_fitting == len(globs)
