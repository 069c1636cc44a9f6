"""Check sums of what a store holds: each row has one, so that damage is noticed.

They are CRC-32, which a random change slips past once in four billion times.
"""

from zlib import crc32

NOTHING, BETWEEN = b"\xff", b"\xfe"  # bytes that UTF-8 never has


def sum_of(*columns: str | bytes | None) -> int:
    """Sum up texts, which may be given as UTF-8.

    >>> sum_of("a", "text", None) == sum_of(b"a", b"text", None) != sum_of("at", "ext", None)
    True
    """
    parts = [
        NOTHING if one is None else one.encode() if isinstance(one, str) else one for one in columns
    ]
    return crc32(BETWEEN.join(parts))


def sum_of_code(code: bytes) -> int:
    """Sum up a code; apart from its document, which keeps its own when it gets another code."""
    return crc32(code)
