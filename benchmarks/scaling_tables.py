"""The tables of docs/scaling.md: what was measured, and what a billion documents cost by it."""

import json
from typing import Any

from common import RESULTS, markdown, read

BILLION = 1_000_000_000
MACHINES = 10  # among which a billion codes are divided


def sizes_table() -> str:
    """Show what an index of so many codes takes, and how fast it answers."""
    result = read("scaling")
    most = max(int(key.rpartition("_")[2]) for key in result["rows"][0] if "query_ms" in key)
    head = [
        "codes",
        "build",
        "memory",
        "with tables",
        "open from file",
        "one query, one core",
        f"queries a second, {most} cores",
        "within 2, one core",
    ]
    rows = [
        [
            f"{row['codes']:,}",
            f"{row['build_s']:.2g} s",
            f"{row['resident_mb']:,} MB",
            f"{row['with_tables_mb']:,} MB",
            f"{1000 * row['open_s']:.0f} ms",
            f"{row['query_ms_1']:.3g} ms",
            f"{row[f'queries_per_second_{most}']:,}",
            f"{row['within_2_ms']:.2g} ms",
        ]
        for row in result["rows"]
    ]
    return markdown(head, rows)


def stores_table() -> str:
    """Show the store at its sizes: documents with text, labels, metadata and codes."""
    rows = [
        [
            f"{store['documents']:,}",
            f"{store['documents'] / store['upsert_per_second']:.0f} s",
            f"{store['bytes_on_disk'] / 1e9:.2g} GB",
            f"{store['open_seconds']:.2g} s",
            f"{store['text_query_ms']:.3g} ms",
            f"{store['text_query_label_filter_ms']:.3g} ms",
        ]
        for store in _stores()
    ]
    head = ["documents", "write", "on disk", "open and search", "query by text", "with a filter"]
    return markdown(head, rows)


def gpu_table() -> str:
    """Show searches in a GPU's memory."""
    head = ["codes", "bits", "k", "one query", "1,000 queries", "times the rate"]
    rows = [
        [
            f"{row['n']:,}",
            str(row["bits"]),
            str(row["k"]),
            f"{row['one_ms']:.2f} ms",
            f"{row['batch_ms']:.0f} ms",
            f"{row['ratio']:.1f}",
        ]
        for row in _on_gpu()
    ]
    return markdown(head, rows)


def _on_gpu() -> list[dict[str, Any]]:
    return [row for row in read("gpu")["rows"] if row["codes"] == "topics"]


def filters_table() -> str:
    """Show queries with filters that few documents pass, before and after there is an index."""
    result = read("filters")
    rows = []
    for key in result["folder"]["queries"]:
        row = [key]
        for engine in ("folder", "PostgreSQL"):
            found = result[engine]["queries"][key]
            row += [f"{_digits(found[when]['cpu_ms'])} ms" for when in ("before", "after")]
        rows.append(row)
    head = ["filter, rank", "folder, before", "with index", "PostgreSQL, before", "with index"]
    return markdown(head, rows)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def billion_table() -> str:
    """Work out a billion documents from the measurements."""
    largest, store, text = read("scaling")["rows"][-1], _stores()[-1], read("text")
    per_code = largest["query_ms_1"] / 1e3 / largest["codes"]  # seconds
    most = max(int(key.rpartition("_")[2]) for key in largest if "query_ms" in key)
    in_batches = largest[f"queries_per_second_{most}"] * largest["codes"] / BILLION
    encoded = text["documents_per_second"]["texts to codes"]
    per_document = store["bytes_on_disk"] / store["documents"]
    rows = [
        ["codes in memory, 64 bits", f"{8 * BILLION / 1e9:.0f} GB; ids 4 or 8 GB more"],
        ["one exact query, one machine, one core, by scan", f"{per_code * BILLION:.2f} s"],
        *_measured_on_gpu(),
        [
            f"the same on {MACHINES} machines, {BILLION // MACHINES:,} codes each",
            f"{1e3 * per_code * BILLION / MACHINES:.0f} ms",
        ],
        [
            f"queries a second in batches, {MACHINES} machines of {most} cores",
            f"{MACHINES * in_batches:.0f}",
        ],
        [
            "encoding the texts",
            f"{BILLION / encoded / 3600:.0f} hours on two cores, "
            f"{BILLION / encoded / 60 / 50:.0f} minutes on a hundred",
        ],
        ["documents on disk, a sentence each", f"{per_document * BILLION / 1e9:.0f} GB"],
        [
            "writing them, one store",
            f"{BILLION / store['upsert_per_second'] / 3600:.1f} hours",
        ],
        *_engines(),
    ]
    return markdown(["a billion documents", ""], rows)


def _measured_on_gpu() -> list[list[str]]:
    """Give what was not worked out but run."""
    return [
        [
            f"the same on one H200, {row['bits']} bits (measured)",
            f"{row['one_ms']:.1f} ms; at once {1e6 / row['batch_ms']:,.0f} queries a second",
        ]
        for row in _on_gpu()
        if row["n"] == BILLION and row["k"] == 10
    ]


def ray_table() -> str:
    """Show Ray on two local nodes beside two plain processes."""
    result = read("ray")
    names = {
        "plain": "two processes, a thread each",
        "plain, all threads": "two processes, two threads each",
        "ray": "Ray, two nodes of one CPU",
    }
    rows = []
    for key, name in names.items():
        seconds, start = result["seconds"][key], result["seconds"].get(f"{key} start")
        rows.append(
            [
                name,
                f"{seconds:.1f} s",
                f"{start:.1f} s" if start else "",
                f"{result['documents'] / seconds:,.0f}",
            ]
        )
    table = markdown(
        [f"{result['documents']:,} documents", "time", "of it start", "a second"], rows
    )
    shares = [f"{100 * result[key]:.0f} %" for key in ("ratio", "ratio_without_start")]
    return (
        f"{table}\n\nRay encodes at {shares[0]} of the rate of two processes with a thread each; "
        f"{shares[1]} when the start is not counted. Median of {result['rounds']} rounds in turns."
    )


def processes_table() -> str:
    """Show what training in two processes gives."""
    rows = [
        [name, ", ".join(f"{value:.3f}" for value in found["values"]), f"{found['mean']:.3f}"]
        for name, found in read("ray")["precision_at_100"].items()
    ]
    return markdown(["", "seeds", "mean"], rows)


def _engines() -> list[list[str]]:
    result = read("engines")
    n = result["documents"]
    rows = []
    for name in ("pgvector", "Milvus Lite"):
        hours = result["operations"]["build"][name] / n * BILLION / 3600
        size = result["engines"][name]["bytes"] / n * BILLION / 1e9
        rows.append([f"the same in {name}, one machine", f"{hours:.0f} hours, {size:.0f} GB"])
    return rows


def _stores() -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in RESULTS.glob("store*.json")]
    return sorted(found, key=lambda store: store["documents"])
