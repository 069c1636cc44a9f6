"""The text of a page: no tags, no scripts, entities as the characters they stand for."""

import html
import re

# What is never closed reaches to the end, so the time grows with the length and no faster.
_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?P<hidden>script|style)\b.*?(?:</(?P=hidden)\s*>|\Z)"
    r"|</?(?P<tag>[a-z][a-z0-9]*)\b[^<>]*>|<[!?][^<>]*>",
    re.IGNORECASE | re.DOTALL,
)
_INLINE = frozenset(
    "a abbr b big bdi bdo cite code del dfn em font i ins kbd mark q s samp small span strike "
    "strong sub sup tt u var wbr".split()
)


def text_of(page: str) -> str:
    """Return the text of some HTML; tags inside a line join, others end a line.

    >>> text_of("<p>Caf&eacute; <script>x()</script><b>b</b>old<br>next &lt; last").splitlines()
    ['', 'Café  bold', 'next < last']
    """
    return html.unescape(_MARKUP.sub(_instead, page))


def looks_like_html(text: str) -> bool:
    """Tell whether a text has the end of a paragraph, link or the like, or a hard space."""
    return bool(re.search(r"</(?:p|div|a|span|li|td|b|i|strong|em|html)>|&nbsp;", text, re.I))


def _instead(match: re.Match[str]) -> str:
    tag = match["tag"]
    return "" if tag and tag.lower() in _INLINE else "\n" if tag else " "
