"""Write the tables of the README and the docs from `results/*.json`.

python benchmarks/tables.py
"""

import re
from pathlib import Path
from typing import Any

from common import read
from living_tables import kills_table, large_table
from nearest_tables import approximate_table, nearest_table, tables_memory_table
from quality_tables import SEEDS, goals_table, radius_table, time_table, wasted_table
from reproduction_report import report
from scaling_tables import (
    billion_table,
    filters_table,
    gpu_table,
    processes_table,
    ray_table,
    sizes_table,
    stores_table,
)
from vectors_tables import hops_table, only_table, teacher_table

from vdsh.hashers import HASHERS
from vdsh.paper.cells import Cell
from vdsh.paper.reference import DATASETS, METHODS, OURS
from vdsh.paper.results import Results, show

ROOT = Path(__file__).parent.parent
CELLS = ROOT / "results" / "cells"
SUPERVISED = [name for name in METHODS if HASHERS[name].supervised]
UNSUPERVISED = [name for name in METHODS if name not in SUPERVISED]


def main() -> None:
    for page, content in pages().items():
        page.write_text(content)


def pages() -> dict[Path, str]:
    """Return the pages with tables as they should read."""
    few = tuple(
        f"{codes}, {how}"
        for codes in ("random 64 bits", "supervised 32 bits")
        for how in ("one query", "batch")
    )
    reproduced = ("defaults", "ablation", "semisupervised")
    tables = {
        "README.md": {"": _together(quality_table(), search_table(few, (1,)), speed_table())},
        "docs/search.md": {"": _together(ranking_table(), search_table(), memory_table())},
        "docs/reproduction.md": {"": report(CELLS)},
        "docs/explain.md": {"words of bits": words_table(), "confidence": confidence_table()},
        "docs/engines.md": {"": engines_table()},
        "docs/operations.md": {"large": large_table(), "kills": kills_table()},
        "docs/scaling.md": {
            "sizes": sizes_table(),
            "nearest": nearest_table(),
            "tables": tables_memory_table(),
            "approximate": approximate_table(),
            "gpu": gpu_table(),
            "stores": stores_table(),
            "filters": filters_table(),
            "billion": billion_table(),
        },
        "docs/ray.md": {"encoding": ray_table(), "training": processes_table()},
        "docs/vectors.md": {
            "hops": hops_table(),
            "teacher": teacher_table(),
            "only": only_table(),
        },
        "docs/quality.md": {
            "goals": goals_table(CELLS),
            "radius": radius_table(CELLS),
            "wasted": wasted_table(CELLS),
            "time": time_table(),
            **{name: (CELLS.parent / f"{name}.md").read_text().strip() for name in reproduced},
        },
    }
    return {ROOT / page: _filled(ROOT / page, marks) for page, marks in tables.items()}


def quality_table(n_bits: int = 32) -> str:
    """Show our defaults beside the best baselines of each corpus."""
    ours, others = Results(CELLS, SEEDS), Results(CELLS, (0,))
    lines = [
        f"Expected precision at 100 on test documents, {n_bits} bits, our defaults (mean of three "
        "seeds); baselines tuned on validation documents:",
        "",
        "| corpus | VDSH | best baseline without labels | VDSH-S | VDSH-SP | best with labels |",
        "|---|---|---|---|---|---|",
    ]
    for dataset, name in DATASETS.items():
        cell = Cell(dataset, "vdsh", n_bits)
        found = [ours.precision(cell._replace(model=m, preset="best")) for m in OURS]
        plain, taught = (others.best_baseline(cell, group) for group in (UNSUPERVISED, SUPERVISED))
        cells = [show(one) for one in (found[0], plain, found[1], found[2], taught)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def speed_table() -> str:
    text, fit = read("text"), read("training_compared")["VDSH"]
    start = read("startup")
    rates = text["documents_per_second"]
    rows = [
        ("texts to 32-bit codes, 2 cores", f"{rates['texts to codes']:,} documents/s"),
        ("scikit-learn's tf-idf alone, same run", f"{rates['sklearn tf-idf alone']:,} documents/s"),
        ("learning 32-bit codes from 15,076 texts, 2 cores", f"{fit['now']['seconds']:.0f} s"),
        ("`vdsh search`, a new process", f"{start['cpu_seconds']['search']:.2f} s of CPU time"),
        ("`import vdsh`", f"{start['wall_seconds']['import vdsh']:.2f} s"),
    ]
    lines = ["| 20 Newsgroups, 10,000 words | |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {value} |" for name, value in rows])


def search_table(starts: tuple[str, ...] = ("",), threads: tuple[int, ...] = (1, 2)) -> str:
    """Show how many times faster than faiss; all rows, or those of some cases."""
    lines = [
        "Exact search beside faiss IndexBinaryFlat, same run, same threads (milliseconds a call; "
        "100 nearest; single queries in turns of ten, so with warm caches; batches of 100 or 20):",
        "",
        "| case | codes | threads | vdsh | faiss | times faster |",
        "|---|---|---|---|---|---|",
    ]
    for row in read("search")["rows"]:
        faiss = row.get("median_ms", {}).get("faiss")
        if faiss is None or row["threads"] not in threads or not row["case"].startswith(starts):
            continue
        ours, ratio = row["median_ms"]["vdsh"], row["times_ours"]["faiss"]
        lines.append(
            f"| {row['case']} | {row['n']:,} | {row['threads']} "
            f"| {_number(ours)} | {_number(faiss)} | {_number(ratio)} |"
        )
    return "\n".join(lines)


def memory_table() -> str:
    rows = [row for row in read("search")["rows"] if row["case"].startswith("memory")]
    grown = [row for row in read("search")["rows"] if row["case"].startswith("growth")]
    store = read("store")
    lines = ["| 10M codes of 64 bits | index | with tables |", "|---|---|---|"]
    for row in rows:
        kind = row["case"].partition(", ")[2]
        lines.append(
            f"| {kind} | {row['index_mb']:.0f} MB | {row['index_with_tables_mb']:.0f} MB |"
        )
    steps = ", ".join(f"{row['n']:,}: {row['median_ms']['vdsh']:.3g} ms" for row in grown)
    return "\n".join(
        [
            *lines,
            "",
            f"One query on one thread by number of codes: {steps}.",
            "",
            f"A store of {store['documents']:,} documents: {store['upsert_per_second']:,} of them "
            f"written a second, opened and searched once in {store['open_seconds']} s, a query by "
            f"text {store['text_query_ms']} ms (median, model included), with a filter on a label "
            f"{store['text_query_label_filter_ms']} ms.",
        ]
    )


def engines_table() -> str:
    """Show how long each engine takes on the same codes; milliseconds, but for the build."""
    result = read("engines")
    names = {"vdsh": "vdsh store", "index": "vdsh index"}
    asked = {
        "build": "build, seconds",
        "single": f"one query, {result['k']} nearest",
        "batch": f"{result['batch']} queries",
        "radius": f"one query, radius {result['radius']}",
        "delete": "delete 100 documents",
    }
    engines = list(result["operations"]["build"])
    where = result["circumstances"]
    lines = [
        f"{result['documents']:,} documents with clustered codes of {result['bits']} bits, all "
        f"engines in one run, in turns, on {where['machine']} (load {result['load']:.1f} when it "
        "began). Milliseconds, medians:",
        "",
        f"| | {' | '.join(names.get(name, name) for name in engines)} |",
        "|---" * (len(engines) + 1) + "|",
    ]
    for task, name in asked.items():
        times = [result["operations"][task][engine] for engine in engines]
        cells = [_number(time if task == "build" else 1000 * time) for time in times]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if result["recall"] is not None:
        found = f"{result['recall']:.1%}"
        lines += ["", f"{found} of what hnsw found was as near as the {result['k']} nearest are."]
    return "\n".join(lines)


def ranking_table() -> str:
    lines = [
        "Precision at 100 on test documents, default settings, by distance and by expected "
        "distance:",
        "",
        "| corpus | model | bits | distance | expected | gain |",
        "|---|---|---|---|---|---|",
    ]
    for row in read("ranking")["rows"]:
        gain = row["expected"] - row["distance"]
        lines.append(
            f"| {row['dataset']} | {row['model']} | {row['bits']} | {row['distance']:.3f} "
            f"| {row['expected']:.3f} | {gain:+.3f} |"
        )
    return "\n".join(lines)


def words_table() -> str:
    rows = read("explain")["rows"]
    asked = {
        "alone": "a document of that word alone",
        "added": "the word put into two made-up documents",
        "gradient": "a small change, averaged over 64 made-up documents",
    }
    names = " | ".join(_explained(row) for row in rows)
    lines = [f"| the encoder's answer to | {names} | time |", "|---|" + "---|" * (len(rows) + 1)]
    for way, name in asked.items():
        found = " | ".join(f"{row['words_of_bits'][way]['found']:.0%}" for row in rows)
        seconds = sorted(row["words_of_bits"][way]["seconds"] for row in rows)[len(rows) // 2]
        lines.append(f"| {name} | {found} | {seconds:.1f} s |")
    return "\n".join(lines)


def confidence_table() -> str:
    lines = [
        "| model | least sure | | | surest | all | rank correlation |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in read("explain")["rows"]:
        sure = row["confidence"]
        cells = [*sure["by_quarter"], sure["precision"], sure["rank_correlation"]]
        lines.append(f"| {_explained(row)} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")
    return "\n".join(lines)


def _explained(row: dict[str, Any]) -> str:
    hidden = row["decoder_size"]
    return row["model"].upper() + (f", hidden decoder layer of {hidden}" if hidden else "")


def _together(*tables: str) -> str:
    return "\n\n".join(tables)


def _number(value: float) -> str:
    """Write three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _filled(path: Path, tables: dict[str, str]) -> str:
    page = path.read_text()
    for name, table in tables.items():
        page = _fill(page, table, name)
    return page


def _fill(page: str, table: str, name: str = "") -> str:
    """Put a table into the marked place of a page: the one whose mark begins with the name."""
    pattern = rf"(<!-- results: {name}[^\n]*-->\n).*?(<!-- end of results -->)"
    return re.sub(pattern, lambda match: f"{match[1]}{table}\n{match[2]}", page, flags=re.DOTALL)


if __name__ == "__main__":
    main()
