"""Milvus and Milvus Lite.

`engine` fills in what a `Store` asks for. It reads `collection` (the documents) and `key_values`
(everything else) through a `session`; `tables` says how documents lie in both, `keys` how texts are
written, `where` how filters are. `lite` runs Milvus Lite, `driver` imports pymilvus.
"""

from vdsh.store.engines.milvus.engine import Milvus

__all__ = ["Milvus"]
