"""HTML to text with Markdown headings, and the titles of texts."""

import html
import re

# What is never closed reaches to the end, so the time grows with the length and no faster.
_COMMENT = r"<!--.*?(?:-->|\Z)"
_ELEMENT = r"<(?P<hidden>{})\b.*?(?:</(?P=hidden)\s*>|\Z)"
_CODE = re.compile(
    f"{_COMMENT}|{_ELEMENT.format('script|style|template|svg|title')}", re.IGNORECASE | re.DOTALL
)
# Menus: elements that say so, and five list items in a row that are nothing but links.
_MENU = re.compile(
    _ELEMENT.format("nav|aside|footer|noscript|button|select")
    + r"|(?:<li\b[^<>]*>\s*+<a\b[^<>]*>[^<>]*</a>\s*+(?:</li>\s*+)?+){5,}",
    re.IGNORECASE | re.DOTALL,
)
_MAIN = re.compile(r"<(?:main|article)\b|<\w+\b[^<>]*\brole=[\"']?main\b", re.IGNORECASE)
_PRE = re.compile(r"<pre\b[^<>]*>(.*?)(?:</pre\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_INLINE = re.compile(
    r"</?(?:a|abbr|b|big|bdi|bdo|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|strike"
    r"|strong|sub|sup|tt|u|var|wbr)\b[^<>]*>",
    re.IGNORECASE,
)
_HEADING = re.compile(r"<h([1-6])\b[^<>]*>((?:[^<]|<(?!/?h[1-6]))*+)</h\1\s*>", re.IGNORECASE)
_TAG = re.compile(r"<(/?[a-z][a-z0-9]*)\b[^<>]*>|<[!?/][^<>]*>", re.IGNORECASE)
_TITLE = re.compile(r"<title\b[^<>]*>(.*?)(?:</title|\Z)", re.IGNORECASE | re.DOTALL)
_BREAKS = {"li": "\n- ", "br": "\n", "tr": "\n", "td": " ", "th": " ", "dt": "\n", "dd": "\n"}
_BREAKS |= {f"/{tag}": " " for tag in _BREAKS}
_LITTLE = 100  # characters of text
_TIDY = (
    (re.compile(r"(?<![ \t\xa0])[ \t\xa0]++(?=\n)"), ""),
    (re.compile(r"\n (?! )"), "\n"),
    (re.compile(r"^-[ ]*(?:\n|\Z)", re.MULTILINE), ""),
    (re.compile(r"\n{3,}"), "\n\n"),
)
_FRONT = re.compile(r"---\r?\n(?:(?!---).*\n)*?title:[ \t]*(.+)")
_FIRST_HEADING = re.compile(
    r"^#{1,6}[ \t]++(\S.*)$|^(\S.*+)\n(?:={3,}+|-{3,}+)[ \t\r]*+$", re.MULTILINE
)
_NEAR = 4000  # characters of a text where its first heading is looked for
# More digits than any character has; Python takes long to make a number of thousands.
_LONG_NUMBER = re.compile(r"&#(\d{8,}+|[xX][0-9a-fA-F]{8,}+);?")


def text_of(page: str) -> str:
    r"""Return the text of some HTML, without scripts and menus; headings are those of Markdown.

    >>> text_of("<h2>Caf&eacute;</h2><script>x()</script><p><b>b</b>old<br>next &lt; last")
    '## Café\n\nbold\nnext < last'
    """
    page = _CODE.sub(" ", page)
    main = _MAIN.search(page)
    text = _without_tags(_MENU.sub("\n", page[main.start() if main else 0 :]))
    if len(text) > _LITTLE:
        return text
    whole = _without_tags(page)  # a menu may never be closed, or be all there is
    return whole if len(whole) > 3 * len(text) else text


def title_of_html(page: str) -> str:
    """Return what `<title>` says."""
    match = _TITLE.search(page)
    return " ".join(_unescape(match[1]).split()) if match else ""


def title_of_text(text: str) -> str:
    """Return the title in the front matter of Markdown, or the first heading near the beginning."""
    if match := _FRONT.match(text):
        title = match[1]
    elif match := _FIRST_HEADING.search(text, 0, _NEAR):
        marked, underlined = match.groups()
        # A heading may end in # as well, but one of nothing else is called by the first.
        title = underlined or marked.rstrip(" \t#") or marked[0]
    else:
        return ""
    return title.strip(" \r\"'")


def looks_like_html(text: str) -> bool:
    """Tell whether a text has the end of a paragraph, link or the like, or a hard space."""
    return bool(re.search(r"</(?:p|div|a|span|li|td|b|i|strong|em|html)>|&nbsp;", text, re.I))


def _without_tags(page: str) -> str:
    pieces = _PRE.split(page)  # every other one is as it was typed
    pieces[::2] = [re.sub(r"\s+", " ", piece) for piece in pieces[::2]]
    text = _INLINE.sub("", "\n\n".join(pieces))
    text = _unescape(_TAG.sub(_break, _HEADING.sub(_heading, text)))
    for pattern, instead in _TIDY:
        text = pattern.sub(instead, text)
    return text.strip()


def _unescape(text: str) -> str:
    """Decode character references, of which each takes its length and no longer."""
    return html.unescape(_LONG_NUMBER.sub(_shorten, text))


def _shorten(match: re.Match[str]) -> str:
    """Leave out zeros before a number; one that is still too long becomes U+FFFD."""
    base = match[1][0] if match[1][0] in "xX" else ""
    digits = match[1].removeprefix(base).lstrip("0") or "0"
    return f"&#{base}{digits};" if len(digits) < 8 else "\ufffd"


def _heading(match: re.Match[str]) -> str:
    words = " ".join(_TAG.sub(" ", match[2]).split()).rstrip(" ¶#")  # a link to the heading itself
    return f"\n\n{'#' * int(match[1])} {words}\n\n" if words else "\n\n"


def _break(match: re.Match[str]) -> str:
    return _BREAKS.get((match[1] or "/td").lower(), "\n\n")
