"""Docstrings of the standard library and the installed packages: real text on every machine.

Source files are read with `ast`, never imported. The label of a docstring is the area of its
module, such as `json`, `scipy.optimize` or `torch.nn`.
"""

import ast
import gc
import hashlib
import os
import sysconfig
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from vdsh.documents import Document

_Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_LEAST_WORDS = 20
# With fewer files, starting processes takes longer than it saves.
_LEAST_FILES_TO_SHARE = 1_000
# An area with fewer documents is counted to its package; a package with fewer is left out.
_LEAST_DOCUMENTS = 40
_SKIPPED = {"tests", "test", "testing", "_vendor", "vendored", "site-packages", "__pycache__"}
_SKIPPED |= {"idlelib", "lib2to3", "pip", "setuptools", "pkg_resources", "externals", "vdsh"}


def collect(
    *,
    modules: Sequence[str] | None = None,
    each: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Document]:
    """Read docstrings of at least 20 words, each text and each name once, sorted by id.

    `modules` such as "email" or "scipy.stats": only these and what is inside them, in seconds
    instead of a minute. `each`: of each area at most so many, a fixed pseudo-random choice.
    `progress` is called with how many files are read, and how many there are.
    """
    files = [(path, name) for path, name in find_sources() if _is_inside(name, modules)]
    found: list[Document] = []
    for number, part in enumerate(_read_all(files), 1):
        found += part
        if progress and (number % 64 == 0 or number == len(files)):
            progress(number, len(files))
    texts = {document.text: document for document in found}.values()
    documents = _merge_small_areas({document.id: document for document in texts}.values())
    return _choose(documents, each)


def _choose(documents: Iterable[Document], each: int | None) -> list[Document]:
    by_chance = sorted(documents, key=lambda one: hashlib.sha256(one.id.encode()).digest())
    by_area: dict[Any, list[Document]] = {}
    for document in by_chance:
        by_area.setdefault(document.labels, []).append(document)
    kept = (document for area in by_area.values() for document in area[:each])
    return sorted(kept, key=lambda document: document.id)


def find_sources() -> list[tuple[Path, str]]:
    """List the source files of installed packages and the standard library, with module names."""
    found = []
    roots = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    for root in dict.fromkeys(Path(root) for root in roots):
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in set(folders) - _SKIPPED if name.isidentifier())
            relative = Path(folder).relative_to(root)
            for file in sorted(files):
                if file.endswith(".py"):
                    parts = [*relative.parts, file.removesuffix(".py")]
                    module = ".".join(part for part in parts if part != "__init__")
                    found.append((Path(folder, file), module))
    return found


def _is_inside(module: str, modules: Sequence[str] | None) -> bool:
    """Say whether a module is one of those, or inside one.

    >>> _is_inside("scipy.stats.qmc", ["scipy.stats"]), _is_inside("jsonschema", ["json"])
    (True, False)
    """
    return modules is None or any(f"{module}.".startswith(f"{name}.") for name in modules)


def _read_all(files: list[tuple[Path, str]]) -> Iterator[list[Document]]:
    """Collect the docstrings of files, in their order, on all cores where that is worth it."""
    if len(files) < _LEAST_FILES_TO_SHARE:
        yield from (_read(*file) for file in files)
        return
    # Syntax trees have no cycles; looking for some would take a fifth of the time.
    with ProcessPoolExecutor(os.cpu_count(), initializer=gc.disable) as pool:
        yield from pool.map(_read, *zip(*files, strict=True), chunksize=64)


def _read(path: Path, module: str) -> list[Document]:
    try:
        with warnings.catch_warnings():
            # Invalid escapes in other people's strings.
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return []
    area = ".".join(module.split(".")[:2])
    return [
        Document(name, text, (area,), {"module": module})
        for name, text in _docstrings(tree, module)
        if len(text.split()) >= _LEAST_WORDS
    ]


def _docstrings(node: ast.Module | _Named, name: str) -> Iterable[tuple[str, str]]:
    """Walk modules, classes and functions; yield dotted names and docstrings."""
    if text := ast.get_docstring(node):
        yield name, text
    for child in node.body:
        if isinstance(child, _Named):
            yield from _docstrings(child, f"{name}.{child.name}")


def _merge_small_areas(documents: Iterable[Document]) -> list[Document]:
    documents = list(documents)
    for name in (lambda area: area.partition(".")[0], lambda area: ""):
        sizes = Counter(document.labels for document in documents)
        small = {labels for labels, size in sizes.items() if size < _LEAST_DOCUMENTS}
        documents = [
            replace(document, labels=(name((document.labels or ("",))[0]),))
            if document.labels in small
            else document
            for document in documents
        ]
    return [document for document in documents if document.labels != ("",)]
