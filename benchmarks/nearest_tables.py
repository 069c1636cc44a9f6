"""The tables of docs/scaling.md about the k nearest without reading everything."""

from typing import Any

from common import RESULTS, markdown, read

NAMES = {
    "vdsh-64": "VDSH, 64 bits",
    "vdsh-128": "VDSH, 128 bits",
    "vdsh-s-64": "VDSH-S, 64 bits",
    "crowded-64": "crowded, 64 bits",
    "random-64": "random, 64 bits",
    "random-128": "random, 128 bits",
}


def nearest_table() -> str:
    """Show tables beside our scan and faiss's, in one run on one thread."""
    head = [
        "codes",
        "number",
        "queries",
        "k",
        "k-th at",
        "ours",
        "our scan",
        "faiss Flat",
        "times the scan, median",
        "mean",
    ]
    rows = [
        [
            NAMES[row["codes"]],
            f"{row['n']:,}",
            row["queries"],
            str(row["k"]),
            f"{row['median_distance_of_kth']:.0f} bits",
            f"{row['tables_ms']:.3g} ms",
            f"{row['scan_ms']:.3g} ms",
            f"{row['faiss_ms']:.3g} ms" if "faiss_ms" in row else "",
            f"{row['times_faster']:.3g}",
            f"{row['times_faster_mean']:.3g}",
        ]
        for name in NAMES
        for row in _rows(name)
    ]
    return markdown(head, rows)


def tables_memory_table() -> str:
    """Show what tables take: memory, and time to build."""
    largest = [max(_rows(name), key=lambda row: row["n"]) for name in NAMES if _rows(name)]
    rows = [
        [
            NAMES[row["codes"]],
            f"{row['n']:,}",
            f"{row['bytes_a_code']:.1f}",
            f"{row['build_s']:.0f} s",
        ]
        for row in largest
    ]
    return markdown(["codes", "number", "bytes a code, tables included", "build, one core"], rows)


def approximate_table() -> str:
    """Show the indexes of faiss that do not read everything."""
    rows = [
        [
            row["index"],
            f"{row['n']:,}",
            str(row["k"]),
            f"{row['faiss_ms']:.3g} ms",
            f"{row['recall']:.3f}",
            f"{row['tables_ms']:.3g} ms",
        ]
        for row in read("nearest_approximate")["rows"]
    ]
    return markdown(["faiss", "codes", "k", "median", "of the nearest found", "ours, exact"], rows)


def _rows(name: str) -> list[dict[str, Any]]:
    files = sorted(RESULTS.glob("nearest_*.json"))
    rows = [row for path in files for row in read(path.stem)["rows"] if row.get("codes") == name]
    return sorted(rows, key=lambda row: (row["n"], row["queries"] == "drawn", row["k"]))
