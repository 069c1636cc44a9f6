"""The tables of docs/operations.md: what a new model and a backup cost a store that is used."""

from typing import Any

from common import markdown, read


def large_table() -> str:
    """Show a reindexing and a backup of many documents, and the searches meanwhile."""
    row = read("living")["large"]
    copy = row["backup"]
    rows = [
        ["encoding and writing them", f"{row['encode_and_write_seconds']:.0f} s", ""],
        ["`reindex`", f"{row['reindex_seconds']:.0f} s", f"at most {row['wanted_ratio']}x"],
        ["that is", f"{row['reindex_ratio']}x", ""],
        ["searches before", _searches(row["searches_before"]), ""],
        ["searches during a `reindex`", _searches(row["searches_during"]), "none fails"],
        ["99th percentile, during against before", f"{row['p99_ratio']}x", "at most 2x"],
        ["`backup` meanwhile", f"{copy['written_a_second_meanwhile']:,} written a second", "1,000"],
        ["`backup`", f"{copy['seconds']} s, {copy['bytes'] / 1e6:,.0f} MB", ""],
        [
            "acknowledged before it began, and missing",
            str(copy["acknowledged_before_and_missing"]),
            "0",
        ],
        [
            "`check` of the copy",
            "all is well" if not copy["problems"] else "problems",
            "all is well",
        ],
    ]
    busy = max(row["load_of_the_machine"]) > 2
    others = " that others used too: times are long, percentiles unsteady" if busy else ""
    about = f"A folder store of {row['documents']:,} documents of twelve words, two cores{others}:"
    return f"{about}\n\n{markdown(['', 'measured', 'wanted'], rows)}"


def kills_table() -> str:
    """Show what was found after runs were killed."""
    result = read("living")
    kinds = {
        "a folder": "kills_folder",
        "PostgreSQL": "kills_postgres",
        "Milvus Lite": "kills_milvus",
    }
    head = ["", "kills", "had the old model", "had the new model", "two kinds", "did not finish"]
    rows = [[name, *_kills(result[key])] for name, key in kinds.items() if key in result]
    return markdown(head, rows)


def _searches(row: dict[str, Any]) -> str:
    return (
        f"{row['searches']}, {row['failed']} failed; median {row['p50_ms']:.0f} ms, "
        f"99th percentile {row['p99_ms']:,.0f} ms"
    )


def _kills(row: dict[str, Any]) -> list[str]:
    names = ("kills", "had_the_old_model_then", "had_the_new_model_then")
    more = ("two_kinds_or_failed_checks", "runs_that_did_not_finish_when_started_again")
    return [str(row[name]) for name in (*names, *more)]
