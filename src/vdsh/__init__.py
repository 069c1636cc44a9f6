"""Semantic hashing for text: documents in, compact binary codes out, Hamming search on them.

Names are imported when first used, so `import vdsh` stays fast and never loads torch.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers know this name; `typing` takes 10 ms to import
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"

_HOMES = {
    "Client": "vdsh.client",
    "Document": "vdsh.documents",
    "HammingIndex": "vdsh.search",
    "JointModel": "vdsh.model.joint",
    "Model": "vdsh.model",
    "TextHasher": "vdsh.pipeline",
    "VdshError": "vdsh.errors",
    "VectorHasher": "vdsh.hashers",
    "open_store": "vdsh.store",
    "read_documents": "vdsh.documents",
}
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604

if TYPE_CHECKING:
    from vdsh.client import Client as Client
    from vdsh.documents import Document as Document
    from vdsh.documents import read_documents as read_documents
    from vdsh.errors import VdshError as VdshError
    from vdsh.hashers import VectorHasher as VectorHasher
    from vdsh.model import Model as Model
    from vdsh.model.joint import JointModel as JointModel
    from vdsh.pipeline import TextHasher as TextHasher
    from vdsh.search import HammingIndex as HammingIndex
    from vdsh.store import open_store as open_store


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'vdsh' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
