"""Long texts as passages, and the place in a text: the heading above it, or its page."""

import re
from functools import lru_cache

# Scripts that put no spaces between words: two characters there count as a word.
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_UNIT = rf"(?:[^\s{_DENSE}]{{1,20}}+\s{{0,8}}+|[{_DENSE}]{{1,2}}+\s{{0,8}}+|\s{{1,20}}+)"
# A blank line before, and a blank line or prose after: else comments in code would be headings.
_HEADING = r"#{1,6}[ \t]+\S[^\n]*(?=\n\s*\n|\n##|\n[-*+>|!\[`]|\n[A-Z][a-z']*,? [\w(]|\n[^\W\da-z_A-Z]|\s*\Z)"
_IS_HEADING = re.compile(rf"(#+)[ \t]+{_HEADING.split(']+', 1)[1]}")
_SECTION = re.compile(rf"\f|\n[ \t\r]*\n(?={_HEADING})")
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")
_SENTENCE = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+[」』”]*\s*")
_SPACE = re.compile(r"\s+")
