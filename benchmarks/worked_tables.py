"""Tables that are put together or worked out from results; `tables.py` has the plain ones."""

from collections.abc import Iterable

from columns import Row, Table, facts, named, of_all, shown
from common import RESULTS, markdown, read

CODES = {
    "vdsh-64": "VDSH, 64 bits",
    "vdsh-128": "VDSH, 128 bits",
    "vdsh-s-64": "VDSH-S, 64 bits",
    "crowded-64": "crowded, 64 bits",
    "random-64": "random, 64 bits",
    "random-128": "random, 128 bits",
}


# -- search and speed -----------------------------------------------------------------------------


def search(starts: Iterable[str] = ("",), threads: tuple[int, ...] = (1, 2)) -> str:
    """Show how many times faster than faiss; all rows, or those of some cases."""
    rows = [row for row in read("search")["rows"] if "faiss" in row.get("median_ms", {})]
    rows = [row for row in rows if row["threads"] in threads]
    return Table(
        lambda: [row for row in rows if row["case"].startswith(tuple(starts))],
        {
            "case": "{case}",
            "codes": "{n:,}",
            "threads": "{threads}",
            "vdsh": "{median_ms[vdsh]:three}",
            "faiss": "{median_ms[faiss]:three}",
            "times faster": "{times_ours[faiss]:three}",
        },
        tight=True,
        about="Exact search beside faiss IndexBinaryFlat, same run, same threads (milliseconds a "
        "call; 100 nearest; single queries in turns of ten, so with warm caches; batches of 100 or "
        "20):\n\n",
    )()


def search_few() -> str:
    kinds = ("random 64 bits", "supervised 32 bits")
    return search([f"{kind}, {how}" for kind in kinds for how in ("one query", "batch")], (1,))


def speed() -> str:
    found = read("text") | read("startup") | {"fit": read("training_cpu")["VDSH"]}
    long = {row["store"]: row for row in read("long")["rows"]}
    rate = "{{documents_per_second[{}]:,}} documents/s".format
    lines = [
        ("texts to 32-bit codes, 2 cores", rate("texts to codes")),
        ("scikit-learn's tf-idf alone, same run", rate("sklearn tf-idf alone")),
        ("learning 32-bit codes from 15,076 texts, 2 cores", "{fit[seconds]:.0f} s"),
        *[
            (
                shown(f"`vdsh search`, a new process, {{documents:,}} {kind}", long[name]),
                shown("{cpu_least:.2f} s of CPU time", long[name]),
            )
            for name, kind in (("notes", "notes"), ("markdown", "Markdown files"))
        ],
        (
            shown("the same, {documents:,} texts of {megabytes:.0f} MB together", long["packages"]),
            shown("{cpu_least:.2f} s of CPU time", long["packages"]),
        ),
        ("`import vdsh`", "{wall_seconds[import vdsh]:.2f} s"),
    ]
    return facts(found, ("20 Newsgroups, 10,000 words", ""), lines, tight=True)


def training_time() -> str:
    """Show how long the defaults train."""
    on_cpu, on_gpu = read("training_cpu"), read("training_gpu")
    rows = [*read("training_linear")["rows"], read("training_linear_1000000")["rows"][-1]]
    corpus, cores = "20 Newsgroups, 32 bits, {}", "two cores, from texts to thresholds"
    made = "{documents:,} texts ({corpus}), {bits} bits, linear"
    cost = "{cpu_seconds:.0f} s of CPU time, at most {peak_mb:,.0f} MB"
    lines = [[shown(made, row), cores, shown(cost, row)] for row in rows]
    lines += [
        [corpus.format(kind.replace("_", "-")), machine, shown("{seconds:.0f} s", found[kind])]
        for machine, found in ((cores, on_cpu), ("one H200", on_gpu["defaults"]))
        for kind in ("VDSH", "VDSH_S")
    ]
    paper = (
        "{epochs_seconds:.1f} s; all of the fit {fit_seconds:.1f} s, the first of a process "
        "{first_fit_seconds:.1f} s"
    )
    as_in_paper = corpus.format("VDSH as in the paper, 30 epochs")
    lines.append([as_in_paper, "one H200", shown(paper, on_gpu)])
    return markdown(["corpus", "machine", "training"], lines)


# -- engines and explanations ---------------------------------------------------------------------


def engines() -> str:
    """Show how long each engine takes on the same codes; milliseconds, but for the build."""
    result = read("engines")
    tasks = {
        "build": "build, seconds",
        "single": "one query, {k} nearest",
        "batch": "{batch} queries",
        "radius": "one query, radius {radius}",
        "delete": "delete 100 documents",
    }
    names = {"vdsh": "vdsh store", "index": "vdsh index"}
    lines = []
    for task, name in tasks.items():
        scale, times = 1 if task == "build" else 1000, result["operations"][task]
        lines.append([name, *(shown("{time:three}", {"time": scale * t}) for t in times.values())])
    head = ["", *(names.get(engine, engine) for engine in result["operations"]["build"])]
    about = (
        "{documents:,} documents with clustered codes of {bits} bits, all engines in one run, in "
        "turns, on {circumstances[machine]} (load {load:.1f} when it began). Milliseconds, medians:"
    )
    found = "\n\n{recall:.1%} of what hnsw found was as near as the {k} nearest are."
    table = f"{shown(about, result)}\n\n{facts(result, head, lines, tight=True)}"
    return table + (shown(found, result) if result.get("recall") is not None else "")


def words_of_bits() -> str:
    models = {_explained(row): row["words_of_bits"] for row in read("explain")["rows"]}
    ways = {
        "alone": "a document of that word alone",
        "gradient": "a small change, averaged over 64 made-up documents",
    }
    lines = []
    for way, name in ways.items():
        found = [model[way] for model in models.values()]
        seconds = sorted(one["seconds"] for one in found)[len(found) // 2]
        lines.append([name, *(f"{one['found']:.0%}" for one in found), f"{seconds:.1f} s"])
    return markdown(["the encoder's answer to", *models, "time"], lines, tight=True)


def confidence() -> str:
    lines = []
    for row in read("explain")["rows"]:
        sure = row["confidence"]
        numbers = [*sure["by_quarter"], sure["precision"], sure["rank_correlation"]]
        lines.append([_explained(row), *(f"{number:.2f}" for number in numbers)])
    head = ["model", "least sure", "", "", "surest", "all", "rank correlation"]
    return markdown(head, lines, tight=True)


def _explained(row: Row) -> str:
    hidden = row["decoder_size"]
    return row["model"].upper() + (f", hidden decoder layer of {hidden}" if hidden else "")


# -- scaling --------------------------------------------------------------------------------------


def sizes() -> str:
    """Show what an index of so many codes takes, and how fast it answers."""
    most = max(int(key.split("_")[-1]) for key in read("scaling")["rows"][0] if "query_ms" in key)
    return Table(
        "scaling",
        {
            "codes": "{codes:,}",
            "build": "{build_s:.2g} s",
            "memory": "{resident_mb:,} MB",
            "with tables": "{with_tables_mb:,} MB",
            "open from file": lambda row: f"{1000 * row['open_s']:.0f} ms",
            "one query, one core": "{query_ms_1:.3g} ms",
            f"queries a second, {most} cores": f"{{queries_per_second_{most}:,}}",
            "within 2, one core": "{within_2_ms:.2g} ms",
        },
    )()


def nearest() -> list[Row]:
    """Give the races of tables, scan and faiss where there are tables."""
    rows = [row for result in of_all("nearest_*") for row in result["rows"] if "codes" in row]
    rows = [row for row in rows if row["n"] > 9e6 and row["k"] == 100]
    order = list(CODES)
    rows.sort(key=lambda r: (order.index(r["codes"]), r["n"], r["queries"] == "drawn", r["k"]))
    return [row | {"name": CODES[row["codes"]]} for row in rows]


def most_codes() -> list[Row]:
    """Give one race of each kind of codes, of the most."""
    return list({row["codes"]: row for row in nearest()}.values())


def on_gpu() -> list[Row]:
    return [row for row in read("gpu")["rows"] if row["codes"] == "topics"]


def stores() -> list[Row]:
    """Give the lives of stores: a folder of two sizes, and on servers."""
    names = {"store": "folder", "store_10000000": "folder"}
    names |= {"store_postgres": "PostgreSQL", "store_milvus": "Milvus Lite"}
    known = {name: where for name, where in names.items() if (RESULTS / f"{name}.json").exists()}
    return [read(name) | {"where": where} for name, where in known.items()]


def filters() -> str:
    """Show queries with filters that few documents pass, before and after there is an index."""
    folder, postgres = (read("filters")[name]["queries"] for name in ("folder", "PostgreSQL"))
    lines = [
        [key, *(shown("{cpu_ms:one} ms", found[when])
                for found in (folder[key], postgres[key]) for when in ("before", "after"))]
        for key in folder
    ]  # fmt: skip
    head = ["filter, rank", "folder, before", "with index", "PostgreSQL, before", "with index"]
    return markdown(head, lines)


# -- a store and a service that are used ----------------------------------------------------------


def large() -> str:
    """Show a reindexing and a backup of many documents, and the searches meanwhile."""
    row = read("living_large")
    searches = (
        "{{{0}[searches]}}, {{{0}[failed]}} failed; median {{{0}[p50_ms]:.0f}} ms, "
        "99th percentile {{{0}[p99_ms]:,.0f}} ms"
    ).format
    missing = "{backup[acknowledged_before_and_missing]}"
    lines = [
        ("encoding and writing them", "{encode_and_write_seconds:.0f} s", ""),
        ("`reindex`", "{reindex_seconds:.0f} s", "at most {wanted_ratio}x"),
        ("that is", "{reindex_ratio}x", ""),
        ("searches before", searches("searches_before"), ""),
        ("searches during a `reindex`", searches("searches_during"), "none fails"),
        ("99th percentile, during against before", "{p99_ratio}x", "at most 2x"),
        ("`backup` meanwhile", "{backup[written_a_second_meanwhile]:,} written a second", "1,000"),
        ("`backup`", f"{{backup[seconds]}} s, {row['backup']['bytes'] / 1e6:,.0f} MB", ""),
        ("acknowledged before it began, and missing", missing, "0"),
        ("`check` of the copy", "problems" if row["backup"]["problems"] else "all is well",
         "all is well"),
    ]  # fmt: skip
    busy = max(row["load_of_the_machine"]) > 2
    others = " that others used too: times are long, percentiles unsteady" if busy else ""
    about = f"A folder store of {row['documents']:,} documents of twelve words, two cores{others}:"
    return f"{about}\n\n{facts(row, ('', 'measured', 'wanted'), lines)}"


def steps() -> list[Row]:
    """Give what was found after steps of several processes, some of which were killed."""
    places = {"folder": "a folder", "postgres": "PostgreSQL", "milvus": "Milvus Lite"}
    return named({key: read(f"living_steps_{key}") for key in places}, places)


def duplicates() -> list[Row]:
    """Give near-duplicates against a comparison of all pairs."""
    result = read("duplicates")
    names = {
        f"store, {model}": f"store made with `{model}`, folder" for model in ("vdsh", "vdsh-s")
    }
    rows = named(result["quality"], names | {"datasketch": "datasketch, MinHash-LSH"})
    for row, key in zip(rows, result["quality"], strict=True):
        row["seconds"] = result["seconds"][key]
    return rows


# -- relevance and vectors ------------------------------------------------------------------------

RANKINGS = {
    "BM25": "BM25",
    "BM25 with stems": "BM25 with stems",
    "MiniLM": "all-MiniLM-L6-v2, as floats",
    "words and codes, linear": "**vdsh**, learned without torch",
    "words and codes, vdsh": "**vdsh**, with the network",
    "words, codes and MiniLM, linear": "**vdsh, MiniLM as second code**",
}
COLLECTIONS = {
    "cacm": "CACM", "cranfield": "Cranfield", "med": "MED", "nfcorpus": "NFCorpus",
    "scifact": "SciFact", "squad-dev": "SQuAD", "trecqa": "TREC-QA", "xquad-de": "XQuAD German",
    "xquad-ru": "Russian", "xquad-zh": "Chinese",
}  # fmt: skip


def contenders() -> list[dict]:
    """List the means of the judged collections."""
    rows = {row["ranking"]: row for row in read("relevance_contenders")["mean"]}
    return [rows[key] | {"ranking": name} for key, name in RANKINGS.items()]


def judged() -> str:
    """Show each judged collection."""
    return _ranked(COLLECTIONS.values(), [(task, "ndcg_10") for task in COLLECTIONS])


def titles() -> str:
    """Show what titles as queries found: the text they head, and its topic."""
    measures = ("mrr_10", "recall_100", "topic_precision_10")
    head = ["Reuters: MRR@10", "20 Newsgroups: MRR@10"]
    tasks = ("reuters_titles", "newsgroups_titles")
    names = [name for first in head for name in (first, "found in 100", "topic P@10")]
    return _ranked(names, [(task, measure) for task in tasks for measure in measures])


def whole_documents() -> str:
    """Show what whole documents as queries found: the share of the first ten with their label."""
    names = {"Reuters (20 categories)": "reuters", "20 Newsgroups": "newsgroups"}
    names["snippets"] = "snippets"
    more = {"codes, linear": "codes, linear", "codes, vdsh": "codes, VDSH"}
    columns = [(f"{task}_documents", "topic_precision_10") for task in names.values()]
    return _ranked(names, columns, RANKINGS | more)


def _ranked(
    head: Iterable[str], columns: list[tuple[str, str]], rankings: dict[str, str] = RANKINGS
) -> str:
    rows = {(row["ranking"], row["task"]): row for row in read("relevance_contenders")["rows"]}
    found = [
        [name, *(f"{value:.3f}" if value is not None else "–" for value in values)]
        for key, name in rankings.items()
        if any(values := [rows.get((key, task), {}).get(measure) for task, measure in columns])
    ]
    return markdown(["ranking", *head], found)


WAYS = {
    ("faiss PQ", "numbers"): "faiss PQ, query with its numbers",
    ("itq", "numbers"): "ITQ, query with its numbers",
    ("itq", "code"): "ITQ",
    ("sph", "code"): "spectral hashing",
    ("sign of components", "code"): "sign of principal components",
    ("lsh", "code"): "LSH",
}


def vectors_alone() -> str:
    """Show label precision and true neighbours of vectors as codes of equal bytes."""
    rows = [row for row in read("vectors_only")["rows"] if (row["way"], row["query"]) in WAYS]
    found = {(row["way"], row["query"], row["bytes"]): row for row in rows}
    sizes = sorted({row["bytes"] for row in rows})
    lines = [
        [name, *(shown("{precision:.3f} / {neighbours:.3f}", found[*way, size]) for size in sizes)]
        for way, name in WAYS.items()
    ]
    return markdown(["precision / neighbours", *(f"{size:.0f} bytes" for size in sizes)], lines)


# -- data drift -----------------------------------------------------------------------------------


def drift() -> str:
    """Show how often each kind of documents raised an alarm."""
    found = read("drift")
    fresh = [item for runs in found["fresh"].values() for item in runs.items()]
    lines = [
        [f"11 corpora in two orders, a model that learned from {of}", _alarms(runs)]
        for of in ("all", "half")
        for runs in [[run for how, run in fresh if how.endswith(f"from {of}")]]
    ]
    for share in ("1.0", "0.5", "0.25", "0.1", "0.05", "0.02"):
        runs = [group[share] for group in found["left_out"].values()]
        lines.append([f"20 Newsgroups, {float(share):.0%} from an unseen group", _alarms(runs)])
    months = "Reuters, the stories after those learned, "
    lines += [[months + part, _alarms([run])] for part, run in found["by_date"].items()]
    for name, run in found["random"].items():
        lines.append([f"random unseen documents, {name}", f"{run['alarms']} of {run['draws']}"])
    return markdown(["documents", "alarms"], lines)


def _alarms(runs: list[Row]) -> str:
    moved = sorted({measure for run in runs for measure in run["moved"]})
    count = f"{sum(bool(run['drifted']) for run in runs)} of {len(runs)}"
    return f"{count}: {', '.join(moved)}" if moved else count
