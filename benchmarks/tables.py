"""Write the tables of the README and the docs: which result, which columns, which place.

python benchmarks/tables.py

A page marks a place by `<!-- results: NAME -->` and `<!-- end of results -->`; `TABLES` has what
goes there, on whatever page it stands. A mark without a name is that of its page.
"""

import re
from collections.abc import Callable
from pathlib import Path

import cell_tables as cells
import worked_tables as worked
from columns import Table, maybe, named
from common import ROOT, read

MARK = re.compile(
    r"(<!-- results: (.*?)(?:, made by [^\n]*)? -->\n).*?(<!-- end of results -->)", re.DOTALL
)
NEAREST = {"codes": "{name}", "number": "{n:,}"}
CARE = {
    "calm": "calm",
    "stop and start": "stopped, then started again at the same socket",
    "second process": "a second process started, then the first stopped",
    "reindex": "`vdsh reindex` with a model of other bits",
    "token change": "a token added, the file garbage, the old token gone",
}
ASKED = {
    "subjects": "subjects of posts",
    "common words": "three of the sixty most common words",
    "whole posts": 'whole posts ("more like this")',
    "without a word": "subjects, without a common word",
}
JOURNEYS = {
    "first_search": "the first search of a process",
    "next_search": "the next search",
    "write": "writing one document",
    "fit": "learning `linear` from 500 texts",
    "fit_and_quality": "the same, and measuring its quality",
}
PILES = {
    "notes": "notes",
    "markdown": "Markdown files",
    "packages": "documentation of packages",
}
TABLES: dict[str, Callable[[], str]] = {
    "README": lambda: f"{cells.quality()}\n\n{worked.search_few()}\n\n{worked.speed()}",
    "search": lambda: worked.search(threads=(1,)),
    "reproduction": cells.report,
    "engines": worked.engines,
    "words of bits": worked.words_of_bits,
    "confidence": worked.confidence,
    "sizes": worked.sizes,
    "nearest": Table(
        worked.nearest,
        {
            **NEAREST,
            "queries": "{queries}",
            "k": "{k}",
            "k-th at": "{median_distance_of_kth:.0f} bits",
            "ours": "{tables_ms:.3g} ms",
            "our scan": "{scan_ms:.3g} ms",
            "faiss Flat": maybe("{faiss_ms:.3g} ms"),
            "times the scan, median": "{times_faster:.3g}",
            "mean": "{times_faster_mean:.3g}",
        },
    ),
    "tables": Table(
        worked.most_codes,
        {
            **NEAREST,
            "bytes a code, tables included": "{bytes_a_code:.1f}",
            "build, one core": "{build_s:.0f} s",
        },
    ),
    "gpu": Table(
        worked.on_gpu,
        {
            "codes": "{n:,}",
            "bits": "{bits}",
            "k": "{k}",
            "one query": "{one_ms:.2f} ms",
            "1,000 queries": "{batch_ms:.0f} ms",
            "times the rate": "{ratio:.1f}",
        },
    ),
    "stores": Table(
        worked.stores,
        {
            "": "{where}",
            "documents": "{documents:,}",
            "added": "{add[seconds]:.0f} s",
            "learned": "{learn[seconds]:.0f} s, {learn[peak_mb]:,} MB",
            "first answer": "{search[first_s]:.2g} s, {search[peak_mb]:,} MB",
            "words and codes": "{search[median_ms]:two} ms",
            "99th percentile": "{search[p99_ms]:two} ms",
            "codes alone": "{search[codes_median_ms]:two} ms",
            "another model": "{reindex[seconds]:.0f} s",
            "backup": maybe("{backup[seconds]:.0f} s"),
            "on disk": lambda row: f"{row['bytes'] / 1e9:.2g} GB" if "bytes" in row else "",
        },
    ),
    "filters": worked.filters,
    "large": worked.large,
    "steps": Table(
        worked.steps,
        {
            "": "{name}",
            "steps": "{steps:,}",
            "kills": "{kills:,}",
            "refused, since another worked": "{refused:,}",
            "faults": lambda row: str(len(row["faults"])),
        },
    ),
    "drift": worked.drift,
    "restart": Table(
        lambda: read("restart")["phases"],
        {
            "meanwhile": lambda row: CARE[row["phase"]],
            "searches": "{searches:,}",
            "failed": lambda row: str(row["lost"] + row["not_200"]),
            "longest silence": "{longest_silence_s:.1f} s",
        },
        tight=True,
    ),
    "chaos": Table(
        lambda: read("chaos")["phases"],
        {
            "meanwhile": "{phase}",
            "searches": "{searches}",
            "lost": "{lost}",
            "not 200": "{not_200}",
            "longest silence": "{longest_silence_s:.2f} s",
            "p99": "{p99_ms:,} ms",
            "peak memory": "{peak_memory_mb:,} MB",
        },
        tight=True,
    ),
    "duplicates": Table(
        worked.duplicates,
        {
            "": "{name}",
            "precision": "{precision:.3f}",
            "recall": "{recall:.3f}",
            "seconds": "{seconds:.1f}",
        },
        tight=True,
    ),
    "contenders": Table(
        worked.contenders,
        {
            "search": "{ranking}",
            "nDCG@10": "{ndcg_10:.3f}",
            "found in 100": "{recall_100:.3f}",
            "bytes a document, beside words": "{code_bytes:,.0f}",
            "a query": "{median_ms:two} ms",
        },
    ),
    "judged": worked.judged,
    "add": Table(
        "add_files",
        {
            "`vdsh add` of 5,000 files, 20 MB": "{run}",
            "answers by words after": "{answers_after:.1f} s",
            "all of it": "{seconds:.1f} s",
            "CPU": "{cpu_seconds:.1f} s",
            "memory": "{mb:,} MB",
        },
    ),
    "titles": worked.titles,
    "documents": worked.whole_documents,
    "million": Table(
        lambda: named(read("words")["queries"], ASKED),
        {
            "query": "{name}",
            "median": "{store[median_ms]:two} ms",
            "99th percentile": "{store[p99_ms]:two} ms",
            "FTS5, words alone": maybe("{fts5[median_ms]:.0f} ms, {fts5[p99_ms]:.0f} ms", "–"),
        },
    ),
    "long": Table(
        lambda: named({row["store"]: row for row in read("long")["rows"]}, PILES),
        {
            "store": "{documents:,} {name}, {megabytes:three} MB",
            "longest": "{longest_kilobytes:,} kB",
            "new process, CPU": "{cpu_least:.2f} s, {cpu_median:.2f} s",
            "by the clock": "{wall_least:.2f} s, {wall_median:.2f} s",
            "first of `store.search`": "{first_ms:.0f} ms",
            "warm": "{warm_median_ms:two} ms, {warm_p99_ms:two} ms",
        },
    ),
    "journeys": Table(
        lambda: named({key: read("journeys")[key] for key in JOURNEYS}, JOURNEYS),
        {"": "{name}", "functions": "{functions}", "files": "{files}"},
    ),
    "peers": Table(
        "words_peers",
        {
            "": "{name}",
            "written a second": "{documents_per_second:,}",
            "disk to texts": "{disk_to_texts}",
            "titles": "{median_ms:.3g} ms, {p99_ms:.3g} ms",
            "with a typo": maybe("{typos median_ms:.3g} ms, {typos p99_ms:.3g} ms", "–"),
            "phrases": maybe("{phrases median_ms:.3g} ms, {phrases p99_ms:.3g} ms", "–"),
            "common words": maybe("{common median_ms:.3g} ms, {common p99_ms:.3g} ms", "–"),
        },
    ),
    "only": worked.vectors_alone,
    "quality": Table(
        "quality",
        {
            "corpus": "{corpus}",
            "method": "{model}",
            "bits": "{bits}",
            "precision at 100": "{precision:.3f}",
        },
    ),
    "hops": cells.hops,
    "beside 0.2": cells.beside_02,
    "teacher": cells.teacher,
    "radius": cells.radius,
    "wasted": cells.wasted,
    "time": worked.training_time,
    **{name: cells.reproduced(name) for name in ("defaults", "ablation", "semisupervised")},
}


def main() -> None:
    for page, content in pages().items():
        page.write_text(content)


def pages() -> dict[Path, str]:
    """Return the pages with tables as they should read."""
    found = {path: path.read_text() for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))}
    return {path: _filled(text, path.stem) for path, text in found.items() if MARK.search(text)}


def _filled(page: str, name: str) -> str:
    def table(mark: re.Match[str]) -> str:
        unnamed = mark[2].startswith(("made by", "python"))
        return f"{mark[1]}{TABLES[name if unnamed else mark[2]]()}\n{mark[3]}"

    return MARK.sub(table, page)


if __name__ == "__main__":
    main()
