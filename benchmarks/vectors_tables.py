"""The tables of docs/vectors.md, from `results/vectors.json` and `results/vectors_only.json`.

Those of words alone on the paper's corpora are from the cells of `vdsh reproduce defaults`.
"""

from statistics import fmean

from common import RESULTS, markdown, read

from vdsh.paper.cells import Cell
from vdsh.paper.reference import BITS, DATASETS
from vdsh.paper.results import Results

SEEDS = (0, 1, 2)
CELLS = Results(RESULTS.parent.parent / "results" / "cells", SEEDS)
NAMES = {
    "20newsgroups": "20 Newsgroups",
    "reuters20": "Reuters",
    "tmc": "TMC",
    "rcv1": "RCV1",
    "snippets": "web snippets, 11 words each",
}


def hops_table() -> str:
    """Precision at 100 of the defaults, before and now."""
    result = read("vectors")
    rows = []
    for corpus, name in NAMES.items():
        before = result["before"][corpus]
        rows.append([f"{name}, before", *(_shown(before.get(str(bits))) for bits in BITS)])
        now = [_mean(result, corpus, "words", bits) for bits in BITS]
        rows.append([f"**{name}, now**", *now])
    rows.append(["SNUH on snippets", *(_shown(result["snuh"]["snippets"].get(str(b)))
                                       for b in BITS)])  # fmt: skip
    return markdown(["test", *(f"{bits} bits" for bits in BITS)], rows)


TAUGHT = {
    "titles": ("titles of Reuters", "lsa", "taught by whole stories"),
    "20newsgroups": ("20 Newsgroups", "minilm", "taught by MiniLM"),
    "snippets": ("web snippets", "minilm", "taught by MiniLM"),
}


def teacher_table() -> str:
    """Precision at 100 without and with a teacher."""
    result = read("vectors")
    rows = []
    for corpus, (name, teacher, how) in TAUGHT.items():
        kinds = [("words", f"{name}, words"), (teacher, f"**{name}, {how}**")]
        for kind, shown in kinds:
            found = [_mean(result, corpus, kind, bits) for bits in (32, 128)]
            rows.append([shown, *found])
    return markdown(["test", "32 bits", "128 bits"], rows)


WAYS = {
    ("faiss PQ", "numbers"): "faiss PQ, query with its numbers",
    ("itq", "numbers"): "**ITQ, query with its numbers**",
    ("itq", "code"): "ITQ",
    ("sph", "code"): "spectral hashing",
    ("sign of components", "code"): "sign of principal components",
    ("lsh", "code"): "LSH",
}


def only_table() -> str:
    """Label precision and true neighbours of vectors as codes of equal bytes."""
    rows = read("vectors_only")["rows"]
    found = {(r["way"], r["query"], r["bytes"]): _pair(r) for r in rows}
    sizes = sorted({r["bytes"] for r in rows if (r["way"], r["query"]) in WAYS})
    lines = [[name, *(found.get((*way, size), "–") for size in sizes)]
             for way, name in WAYS.items()]  # fmt: skip
    return markdown(["precision / neighbours", *(f"{size:.0f} bytes" for size in sizes)], lines)


def _pair(row: dict) -> str:
    return f"{row['precision']:.3f} / {row['neighbours']:.3f}"


def _mean(result: dict, corpus: str, teacher: str, bits: int, key: str = "test") -> str:
    """Show the mean over seeds."""
    wanted = (corpus, teacher, bits)
    if teacher == "words" and corpus in DATASETS:
        found = CELLS.precision(Cell(corpus, "vdsh", bits, preset="best"))
        return _shown(None if found is None else found.mean)
    rows = [r for r in result["rows"] if (r["corpus"], r["teacher"], r["bits"]) == wanted]
    return _shown(fmean(row[key] for row in rows) if len(rows) == len(SEEDS) else None)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
