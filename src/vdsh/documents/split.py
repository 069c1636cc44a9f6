r"""Long texts as passages, and the place in a text: the heading above it, or its page.

Headings are those of Markdown, pages end with form feeds; every reader writes them so.
"""

import re
from functools import lru_cache

# Scripts that put no spaces between words: two of their characters count as a word.
_DENSE = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# A word longer than 20 characters counts as several, and so does much white space.
_SPACED_WORD = r"(?:\S{1,20}+\s{0,8}+|\s{1,20}+)"
_DENSE_WORD = rf"(?:[^\s{_DENSE}]{{1,20}}+\s{{0,8}}+|[{_DENSE}]{{1,2}}+\s{{0,8}}+|\s{{1,20}}+)"
_HAS_DENSE = re.compile(f"[{_DENSE}]")
# `# Title` may also be a comment in code: it needs a blank line before, and one or prose after.
_PROSE = r"\n\s*\n|\n##|\n[-*+>|!\[`]|\n[A-Z][a-z']*,? [\w(]|\n[^\W\d_\x00-\x7f]|\s*\Z"
_TITLE = rf"(?:\A|(?<=\n\n)|(?<=\n\r\n))#[ \t]++(?=\S[^\n]*+(?<![.,;])(?:{_PROSE}))"
_HEADING = re.compile(rf"(?:#{{2,6}}[ \t]++|{_TITLE})(\S[^\n]*+)")
_SECTION = re.compile(rf"\f|\n(?={_HEADING.pattern})")
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")
# A run of stops that ends no sentence is matched too, without a group, so that it is passed over
# at once: a search would begin again at each of its stops.
_SENTENCE = re.compile(
    r"[.!?…]++(?:[\"'”’)\]]*+(?P<spaced>\s++))?+|(?P<dense>[。！？]++[」』”]*+\s*+)"
)
_SPACE = re.compile(r"\s+")
_OVERLAP = 15  # per cent
_NEAR = 200  # characters where the end of a sentence is looked for first
_MOST_TRIED = 10_000  # lines with # that are no headings, before the search for one ends
_LONGEST_NAME = 80


def split_text(text: str, words: int = 250) -> list[tuple[int, int]]:
    """Split a long text into passages that overlap a little; return where each begins and ends.

    They end before headings and behind pages, paragraphs, sentences or words, in this order of
    preference. The last one may have a fifth more than `words`. In scripts without spaces two
    characters count as a word.

    >>> split_text("One two three four. Five six seven eight. Nine ten.", words=6)
    [(0, 20), (20, 51)]
    """
    spans, start = list[tuple[int, int]](), 0
    window = _window(words, not text.isascii() and bool(_HAS_DENSE.search(text)))
    while match := window.match(text, start):
        if match.end() == len(text):
            break
        cut, following = _cut(text, start, match.end(1), match.end(2))
        if spans and cut <= spans[-1][1]:  # nothing but what overlaps
            start = spans[-1][1]
            continue
        spans.append((start, cut))
        start = following
    return [*spans, (start, len(text))] if text else []


@lru_cache(8)
def _window(words: int, is_dense: bool) -> re.Pattern[str]:
    """Match a passage that ends between group 1 and group 2, and what may be left behind it."""
    word, half = _DENSE_WORD if is_dense else _SPACED_WORD, max(1, words // 2)
    return re.compile(rf"({word}{{{half}}}+)({word}{{{half}}}+){word}{{1,{1 + words // 5}}}+")


def _cut(text: str, start: int, least: int, most: int) -> tuple[int, int]:
    """Return where a passage ends, at least and at most there, and where the next one begins."""
    if section := _SECTION.search(text, least, most):
        return section.end(), section.end()
    ends = (_last(pattern, text, least, most) for pattern in (_PARAGRAPH, _SENTENCE))
    clean = next(filter(None, ends), 0)
    cut = clean or _last(_SPACE, text, least, most) or most
    zone = cut - (cut - start) * _OVERLAP // 100
    if starts := [end for end in _ends(_SENTENCE, text, zone, cut) if end < cut]:
        return cut, starts[-1]
    space = None if clean else _SPACE.search(text, zone, cut)
    return cut, cut if clean else space.end() if space and space.end() < cut else zone


def _last(pattern: re.Pattern[str], text: str, begin: int, end: int) -> int:
    for nearer in (max(begin, end - _NEAR), begin):
        if ends := _ends(pattern, text, nearer, end):
            return ends[-1]
    return 0


def _ends(pattern: re.Pattern[str], text: str, begin: int, end: int) -> list[int]:
    """List where matches end, of a pattern with groups where one of these has matched."""
    matches = pattern.finditer(text, begin, end)
    return [match.end() for match in matches if match.lastgroup or not pattern.groups]


def place_of(text: str, at: int) -> str:
    r"""Say where in a text a character is: below which headings, or on which page.

    >>> place_of("# Guide\n\n## Install\n\nFirst,\n\n### Linux\n\nunpack it.", 45)
    'Install > Linux'
    >>> place_of("One page.\fAnother.", 12), place_of("No heading.", 5)
    ('page 2', '')
    """
    if "\f" in text:
        page = text.count("\f", 0, at) + 1
        return f"page {page}"
    names, level, end = list[str](), 7, at + 1
    for _ in range(_MOST_TRIED):
        begin = text.rfind("\n#", 0, end) + 1
        heading = _HEADING.match(text, begin)
        depth = len(heading[0]) - len(heading[0].lstrip("#")) if heading else 7
        if heading and depth < level:
            level = depth
            names.append(heading[1].rstrip("# \t\r")[:_LONGEST_NAME])
        end = begin
        if not begin or level == 1 or len(names) == 2:
            break
    return " > ".join(reversed(names))
