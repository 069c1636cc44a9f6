"""Reads PDF files in a process of its own, which the system ends where a file takes too much.

`vdsh.documents.pdf` starts it and writes to its standard input: a line of JSON, then the bytes of
a file. It answers with a line of JSON and waits for the next file. It loads nothing of vdsh, so
that it starts as quickly as pypdf does.
"""

import io
import json
import logging
import math
import re
import sys
import time
from typing import Any

_HYPHEN = re.compile(r"(?<=[a-z])-\n(?=[a-z])")  # of a word that ends on the next line


def main() -> None:
    """Read files until there are no more."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells every oddity of a file
    while line := sys.stdin.buffer.readline():
        asked = json.loads(line)
        data = sys.stdin.buffer.read(asked["size"])
        _set_limits(asked["seconds"], asked["memory"])
        answer = _answer(data, asked["limit"])
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


def _set_limits(seconds: float, memory: int) -> None:
    """Let the system end this process after more seconds of work; refuse it more memory."""
    try:
        import resource
    except ImportError:  # Windows, where the other process watches the clock alone
        return
    used = time.process_time()
    limits = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, math.ceil(used + seconds)),
        (resource.RLIMIT_AS, memory),
    ]
    for kind, limit in limits:
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most)
        try:
            resource.setrlimit(kind, (limit, most))
        except (OSError, ValueError):  # a system that has no such limit, or keeps a lower one
            pass


def _answer(data: bytes, limit: int) -> dict[str, Any]:
    """Read a file; what is wrong with it is "reason", or "damage" where a parser failed."""
    try:
        return _read(data, limit)
    except MemoryError:
        return {"memory": True}
    except Exception as error:
        return {"damage": f"{type(error).__name__}: {error}"}


def _read(data: bytes, limit: int) -> dict[str, Any]:
    import pypdf

    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"reason": "needs a password; save it without one"}
    pages = []
    n_characters = 0
    for page in reader.pages:
        words = page.extract_text().replace("\f", " ")
        pages.append(_HYPHEN.sub("", words))
        n_characters += len(pages[-1])
        if n_characters > limit:
            return {"reason": f"has more than {limit:,} characters of text"}
    text = "\f".join(pages)
    if not text.strip():
        return {"reason": "has no text (a scan?)"}
    title = (reader.metadata and reader.metadata.title) or text.strip().splitlines()[0]
    return {"text": text, "title": str(title)}


if __name__ == "__main__":
    main()
