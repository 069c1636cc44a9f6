"""Print the tables of `docs/relevance.md` from `results/relevance*.json`."""

from statistics import mean
from typing import Any

from common import markdown, read

TITLES = ("reuters_titles", "newsgroups_titles")
DOCUMENTS = ("reuters_documents", "newsgroups_documents", "snippets_documents")
MEASURES = ("mrr_10", "found_100", "topic_precision_10")


def main() -> None:
    result = read("relevance")
    for text in (test_table(result["rows"]), choice_table(result["chosen_on"])):
        print(text, end="\n\n")
    print(speed_table(read("relevance_speed")))


def test_table(rows: list[dict[str, Any]]) -> str:
    """Show means over seeds of what the test queries found."""
    columns = [(task, measure) for task in TITLES for measure in MEASURES]
    columns += [(task, "topic_precision_10") for task in DOCUMENTS]
    columns += [("snippets_judged", "precision_10"), ("snippets_judged", "judged_10")]
    names = list(dict.fromkeys((row["model"], row["ranking"]) for row in rows))
    lines = []
    for model, ranking in names:
        line = [f"{ranking} {model}".strip()]
        for task, measure in columns:
            seeds = [
                row[measure]
                for row in rows
                if (row["model"], row["ranking"], row["task"]) == (model, ranking, task)
            ]
            line.append(f"{mean(seeds):.3f}" if seeds else "–")
        lines.append(line)
    return markdown(["ranking", *(f"{task} {measure}" for task, measure in columns)], lines)


def choice_table(rows: list[dict[str, Any]]) -> str:
    """Show what the queries for choosing found, one model of each kind."""
    names = list(dict.fromkeys((row["rule"], row["weight"]) for row in rows))
    lines = []
    for rule, weight in names:
        line = [rule, f"{weight:g}"]
        for task in (*TITLES, *DOCUMENTS):
            for model in ("vdsh-32-0", "vdsh-s-32-0"):
                wanted = (rule, weight, task, model)
                (row,) = (
                    r for r in rows if (r["rule"], r["weight"], r["task"], r["model"]) == wanted
                )
                mrr = f"{row['mrr_10']:.3f} / " if "mrr_10" in row else ""
                line.append(f"{mrr}{row['topic_precision_10']:.3f}")
        lines.append(line)
    tasks = [f"{task} {kind}" for task in (*TITLES, *DOCUMENTS) for kind in ("VDSH", "VDSH-S")]
    return markdown(["rule", "weight", *tasks], lines)


def speed_table(facts: dict[str, Any]) -> str:
    """Show time of a query, encoding and bytes."""
    lines = []
    for name, milliseconds in facts["query_ms"].items():
        rate = facts["documents_per_second"].get(name, "–")
        lines.append([name, f"{milliseconds:.2f}", f"{facts['bytes_a_document'][name]}", f"{rate}"])
    return markdown(["ranking", "ms a query", "bytes a document", "documents/s"], lines)


if __name__ == "__main__":
    main()
