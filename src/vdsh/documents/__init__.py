"""Files to documents, as a stream: JSON lines, CSV, TSV, Parquet, text, folders of files, stdin."""

from typing import TYPE_CHECKING, Any

from vdsh.documents.document import Document

if TYPE_CHECKING:
    from vdsh.documents.reader import DocumentReader, read_documents

__all__ = ["Document", "DocumentReader", "read_documents"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # a search reads no files
        from vdsh.documents import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
