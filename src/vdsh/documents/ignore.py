"""Patterns as a `.gitignore` has them; of several that fit, the last decides."""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

_ANY_FOLDERS = None  # `**`
_Glob = re.Pattern[str] | None


class _Rule(NamedTuple):
    brings_back: bool
    folders_only: bool
    globs: tuple[_Glob, ...]


class Patterns:
    """Say which files and folders to leave out; what is below such a folder is never asked for.

    >>> rules = Patterns(["*.log", "!keep.log", "build/", "/docs/**/old"])
    >>> [rules.leave_out(path) for path in ("a/x.log", "keep.log", "build/", "docs/old", "build")]
    [True, False, True, True, None]
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules = [rule for line in lines if (rule := _read_rule(line))][::-1]
        # Most rules are for names alone, and most names fit none: one look instead of sixty.
        by_name = [rule.globs[1] for rule in self._rules if _is_by_name(rule.globs)]
        self._names = re.compile("|".join(glob.pattern for glob in by_name if glob) or "(?!)")
        self._paths = [rule.globs for rule in self._rules if not _is_by_name(rule.globs)]

    def leave_out(self, path: str) -> bool | None:
        """Say whether to leave out a path (that of a folder ends in `/`); None: no rule fits."""
        names = path.rstrip("/").split("/")
        if not self._names.match(names[-1]) and not any(_fit(names, it) for it in self._paths):
            return None
        for rule in self._rules:
            if (path[-1] == "/" or not rule.folders_only) and _fit(names, rule.globs):
                return not rule.brings_back
        return None

    def fits_inside(self, path: str) -> bool:
        """Say whether a rule fits a path, or a folder that it is in."""
        ends = [place.end() for place in re.finditer(r"/|.\Z", path)]
        return any(self.leave_out(path[:end]) for end in ends)


def _read_rule(line: str) -> _Rule | None:
    """Read a line; None where it is empty, a comment, or no pattern."""
    line = re.sub(r"(?<!\\) +$", "", line.rstrip("\r\n"))
    brings_back, body = line[:1] == "!", line.removeprefix("!").rstrip("/")
    if not body or line[0] == "#":
        return None
    segments = re.sub(r"(\*\*/)+", "**/", body.removeprefix("/")).split("/")
    if "/" not in body:
        segments = ["**", *segments]
    if segments[-1] == "**":
        segments.append("*")
    with suppress(re.error):
        return _Rule(brings_back, line[-1] == "/", tuple(map(_compiled, segments)))
    return None


def _compiled(segment: str) -> _Glob:
    if segment == "**":
        return _ANY_FOLDERS
    plain = re.sub(r"\\([*?\[])", r"[\1]", segment)
    return re.compile(fnmatch.translate(re.sub(r"\\(.)", r"\1", plain)))


def _is_by_name(globs: Sequence[_Glob]) -> bool:
    return len(globs) == 2 and globs[0] is _ANY_FOLDERS


def _fit(names: Sequence[str], globs: Sequence[_Glob]) -> bool:
    if _is_by_name(globs):
        names = names[-1:]
    if not globs or not names:
        return not globs and not names
    if globs[0] is _ANY_FOLDERS:
        return any(_fit(names[begin:], globs[1:]) for begin in range(len(names)))
    return bool(globs[0].match(names[0])) and _fit(names[1:], globs[1:])
