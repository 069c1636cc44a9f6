"""Files to documents, as a stream: JSON lines, CSV, TSV, Parquet, text, folders of files, stdin."""

from vdsh.documents.document import Document
from vdsh.documents.reader import DocumentReader, read_documents

__all__ = ["Document", "DocumentReader", "read_documents"]
