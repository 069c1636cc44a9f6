"""Milvus and Milvus Lite.

`engine` fills in what a `Store` asks for. It reads its two collections (`collection`) through a
`session`; `tables` says how documents lie in both, `where` how filters are written. `lite` runs
Milvus Lite.
"""

import logging

from vdsh.errors import needing

with needing("A store in Milvus", "pymilvus", "milvus"):
    import pymilvus  # noqa: F401
from vdsh.store.engines.milvus.engine import Milvus

logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it prints what it also raises

__all__ = ["Milvus"]
