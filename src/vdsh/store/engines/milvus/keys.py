"""Texts as keys of a small alphabet, in the same order.

Milvus has no escapes that all its versions agree on, so a text is written in characters that need
none: what stands in an expression is then always one whole text. ASCII letters, digits and most
signs stay as they are; each other byte of UTF-8 becomes a sign and two hexadecimal digits, and the
signs are chosen so that keys sort as the texts do.
"""

import re

PLAIN = re.compile(r"[(-Za-z]*")
ESCAPED = re.compile(r"[!\[~]([0-9a-f]{2})")
LOW, MIDDLE, HIGH = "!", "[", "~"  # for what is below "(", between "Z" and "a", above "z"


def _byte_key(byte: int) -> str:
    if byte < ord("("):
        return f"{LOW}{byte:02x}"
    if byte > ord("z"):
        return f"{HIGH}{byte:02x}"
    return f"{MIDDLE}{byte:02x}" if ord("Z") < byte < ord("a") else chr(byte)


BYTE_KEYS = [_byte_key(byte) for byte in range(256)]


def to_key(text: str) -> str:
    """Write a text as a key.

    >>> to_key("post-7"), to_key('a "b"'), to_key("é")
    ('post-7', 'a!20!22b!22', '~c3~a9')
    """
    if PLAIN.fullmatch(text):
        return text
    return "".join([BYTE_KEYS[byte] for byte in text.encode()])


def from_key(key: str) -> str:
    """Read what `to_key` wrote.

    >>> from_key("a!20!22b!22")
    'a "b"'
    """
    if PLAIN.fullmatch(key):
        return key
    return ESCAPED.sub(lambda match: chr(int(match[1], 16)), key).encode("latin-1").decode()
