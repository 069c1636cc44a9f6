"""Milvus and Milvus Lite.

`engine` fills in what a `Store` asks for. It reads `collection` (the documents) and `key_values`
(everything else) through a `session`; `tables` says how documents lie in both, `keys` how texts are
written, `where` how filters are. `lite` runs Milvus Lite, `driver` imports pymilvus.
"""

import logging

from vdsh.errors import missing_package

try:
    import pymilvus  # noqa: F401
except ImportError as _error:
    raise missing_package("A store in Milvus", "pymilvus", "milvus") from _error
from vdsh.store.engines.milvus.engine import Milvus

logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it prints what it also raises

__all__ = ["Milvus"]
