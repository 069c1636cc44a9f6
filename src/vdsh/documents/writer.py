"""Documents to a file that every reader here takes: JSON lines, compressed."""

import json
from collections.abc import Iterable
from pathlib import Path

from vdsh.documents.document import Document
from vdsh.files import new_gzip_file


def write_documents(path: Path, documents: Iterable[Document]) -> None:
    """Write a `.jsonl.gz` that is whole or absent; metadata become fields beside the text."""
    with new_gzip_file(path) as file:
        for document in documents:
            fields = {"id": document.id, "text": document.text, "labels": document.labels}
            line = json.dumps(fields | document.metadata, ensure_ascii=False)
            file.write(line.encode() + b"\n")
