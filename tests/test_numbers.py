"""Numbers in prose are those of committed results, and results are those that pages show (#31).

`CLAIMS` has, for each page, sentences with `{}` for their numbers, and where the numbers come from.
A number is right where it is the result, rounded to the digits that it shows.
"""

import gzip
import re
import sys
from pathlib import Path
from statistics import mean

import pytest

from vdsh.paper.cells import Cell
from vdsh.paper.reference import BITS, LATER
from vdsh.paper.results import Results

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
NUMBER = r"([+-]?\d[\d,]*(?:\.\d+)?)"
sys.path.insert(0, str(BENCHMARKS))
import common  # noqa: E402
import tables  # noqa: E402
import worked_tables  # noqa: E402

DEFAULTS = Results(ROOT / "results" / "cells", (0, 1, 2))
FIRST = Results(ROOT / "results" / "cells", (0,))


def n_lines(path):
    return len(gzip.decompress(path.read_bytes()).splitlines())


def of(name, *path):
    """Take a number out of a result."""
    found = common.read(name)
    for key in path:
        found = found[key]
    return found


BOTH = "words and codes, linear"


def relevance(task, ranking, measure):
    """Take what the queries of a task found."""
    wanted = {"task": task, "ranking": ranking}.items()
    (row,) = (row for row in of("relevance_contenders", "rows") if wanted <= row.items())
    return row[measure]


def of_seven(ranking):
    (row,) = (row for row in of("relevance_contenders", "mean") if row["ranking"] == ranking)
    return row["ndcg_10"]


def beyond_words(tasks):
    """List how many points more of their topic words and codes find than BM25 with stems."""
    words, key = "BM25 with stems", "topic_precision_10"
    return [100 * (relevance(task, BOTH, key) - relevance(task, words, key)) for task in tasks]


def by_hand(ranking):
    return relevance("snippets_judged", ranking, "precision_10")


def explained(*path):
    """Take a number of each model that was explained."""
    found = []
    for row in of("explain", "rows"):
        for key in path:
            row = row.get(key, {})
        found += [row] if row else []
    return found


def defaults(dataset, bits, model="vdsh"):
    return DEFAULTS.precision(Cell(dataset, model, bits, preset="best")).mean


def gap(dataset, bits):
    """Say how far the defaults are above the better of the later methods."""
    best = max(row[dataset][BITS.index(bits)] for row in LATER.values())
    return defaults(dataset, bits) - best


def points(dataset):
    """Say the least and the most points by which the defaults are above later methods."""
    gaps = [100 * gap(dataset, bits) for bits in (16, 32, 64, 128)]
    return min(gaps), max(gaps)


def summarized(what):
    """Take the two numbers of a row of the summary: "45 of 60 (75%)"."""
    return map(int, found_in("docs/reproduction.md", f"| {what} | {{}} of {{}} "))


def nearest(name, n, queries, k, measure):
    wanted = {"n": n, "queries": queries, "k": k}.items()
    (row,) = (row for row in of(name, "rows") if wanted <= row.items())
    return row[measure]


def kinds(phase, measure):
    """Take a number of a phase of the restarts."""
    return next(row[measure] for row in of("restart", "phases") if row["phase"] == phase)


def index_seconds(engine):
    """Take the mean time that the indexes of fields took, as the one value of a claim."""
    return [mean(row["cpu_s"] for row in of("filters", engine, "index").values())]


CONTENDERS = "BM25 with stems", BOTH, "MiniLM", "words, codes and MiniLM, linear"
REUTERS, NEWS = "reuters_titles", "newsgroups_titles"
SHORT, LONG = "relevance", "relevance, whole posts"
CLAIMS = {
    "README.md": lambda: [
        ("learns and searches; {} MB", of("startup_size", "base_install_mb")),
        ("{} in a fresh environment, learns codes from them, and searches: {} s in all",
         of("add_demo", "documents"), of("add_demo", "seconds")),
    ],
    "docs/quality.md": lambda: [
        ("the last rounds, {} fits", sum(map(n_lines, ROOT.glob("results/tuning/*.gz")))),
        ("20 Newsgroups VDSH with our defaults is above both at every length, by {} to {} points",
         *points("20newsgroups")),
        ("on Reuters too, by {} to {}", *points("reuters20")),
        ("With 64 bits on TMC SNUH is {} above, with 128 {}", -gap("tmc", 64), -gap("tmc", 128)),
        ("the nearest is ITQ on Reuters: {} with 32 bits",
         FIRST.precision(Cell("reuters20", "itq", 32)).mean),
        ("{} points below VDSH", 100 * (defaults("reuters20", 32)
                                        - FIRST.precision(Cell("reuters20", "itq", 32)).mean)),
    ],
    "docs/reproduction.md": lambda: [
        ("**Ours.** {} of {} cells are at the paper's number or above",
         *summarized("VDSH, VDSH-S, VDSH-SP at least at the paper's number")),
        ("Significantly best in {} of {} cells",
         *summarized("VDSH-S, VDSH-SP above every baseline, p < 0.01")),
    ],
    "docs/models.md": lambda: [
        ("with 32 and 64 bits it is below VDSH by {} and {} on 20 Newsgroups", *(
            defaults("20newsgroups", n) - defaults("20newsgroups", n, "linear") for n in (32, 64))),
    ],
    "docs/text.md": lambda: [
        ("takes about {} microseconds of a core",
         2e6 / of("text", "documents_per_second", "texts to codes")),
        ("Alone a post takes {} ms",
         1e3 / of("text", "documents_per_second", "texts to codes, one at a time")),
    ],
    "docs/scaling.md": lambda: [
        ("Ten million codes of 64 bits take {} MB, and an index opens from its file in {} ms",
         of("scaling", "rows", 1, "resident_mb"),
         1000 * of("scaling", "rows", 1, "open_s")),
        ("one core takes {} s to scan them; one H200 took {} ms",
         of("scaling", "rows", -1, "query_ms_1") / of("scaling", "rows", -1, "codes") * 1e6,
         next(row["one_ms"] for row in of("gpu", "rows")
              if (row["n"], row["bits"], row["k"]) == (10**9, 64, 10))),
        ("tables, {} bytes a code",
         nearest("nearest_real64", 100_000_000, "drawn", 100, "bytes_a_code")),
        ("where a scan takes {} ms",
         nearest("nearest_real64", 100_000_000, "drawn", 100, "scan_ms")),
        ("{} searches a second over {} documents on two cores",
         of("server", SHORT, "searches_per_second"), of("server", "documents")),
        ("Ten million documents of 22 words were added in {} minutes, with {} MB of memory, and "
         "learned and encoded in {} minutes",
         of("store_10000000", "add", "seconds") / 60, of("store_10000000", "add", "peak_mb"),
         of("store_10000000", "learn", "seconds") / 60),
        ("takes {} ms by words and codes and {} ms by codes alone",
         of("store_10000000", "search", "median_ms"),
         of("store_10000000", "search", "codes_median_ms")),
        ("added in {} s, learned and encoded in {} s; a search takes {} ms by words and codes and "
         "{} ms by codes.",
         *(of("store_postgres", *keys) for keys in (("add", "seconds"), ("learn", "seconds"),
           ("search", "median_ms"), ("search", "codes_median_ms")))),
        ("In Milvus Lite: added in {} s, learned and encoded in {} s; {} ms by words and codes and "
         "{} ms by codes.",
         *(of("store_milvus", *keys) for keys in (("add", "seconds"), ("learn", "seconds"),
           ("search", "median_ms"), ("search", "codes_median_ms")))),
        ("Making one takes about {} s of a core for a million documents", *index_seconds("folder")),
        ("numbers of a field, in {} s of a core", *index_seconds("PostgreSQL")),
    ],
    "docs/add.md": lambda: [
        ("over {} small files it takes {} s and {} MB", of("add_many", "files"),
         of("add_many", "rows", -1, "seconds"), of("add_many", "rows", -1, "mb")),
        ("Of {} runs that were killed at any time", of("add_kills", "answered")),
        ("none of {} searches failed, and 99 in 100 took at most {} ms ({} ms before)",
         of("add_learning", "meanwhile", "searches"), of("add_learning", "meanwhile", "p99_ms"),
         of("add_learning", "before", "p99_ms")),
    ],
    "docs/howto/assistants.md": lambda: [
        ("{} searches a second on one connection over pipes and {} over HTTP, from {} posts",
         of("mcp", "pipes", "searches_per_second"), of("mcp", "http", "searches_per_second"),
         of("mcp", "documents")),
    ],
    "docs/results.md": lambda: [
        ("128-bit codes, drawn queries, 100 nearest are {} times as fast as the scan",
         nearest("nearest_real128", 100_000_000, "drawn", 100, "times_faster")),
        ("Making an index takes about {} s of a core", *index_seconds("folder")),
        ("numbers of a field, in {} s of a core", *index_seconds("PostgreSQL")),
        ("{} documents of 22 words, two workers", of("server", "documents")),
        ("{} searches a second held for 60 s without an error, half within {} ms and 99 in 100 "
         "within {} ms; {} a second at most; whole posts as queries {}.",
         of("server", SHORT, "searches_per_second"), of("server", SHORT, "p50_ms"),
         of("server", SHORT, "p99_ms"),
         of("server", SHORT, "most_searches_per_second"),
         of("server", LONG, "most_searches_per_second")),
        ("By distance {} a second were held (99 in 100 within {} ms), and {} at most.",
         *(of("server", "distance", key)
           for key in ("searches_per_second", "p99_ms", "most_searches_per_second"))),
        ("None of {} failed", of("restart", "searches")),
        ("{} ms when calm, {} ms while two processes served, {} ms during a `reindex`",
         *(kinds(phase, "p99_ms") for phase in ("calm", "second process", "reindex"))),
        ("waits for the next one, {} s here", kinds("stop and start", "longest_silence_s")),
        ("Of {} documents answered `written`, {} were lost. It stopped {} s after SIGTERM",
         *(of("chaos", key) for key in ("written", "written_and_lost", "seconds_to_stop"))),
        ("among {} files of documentation", of("relevance_deep", "documents")),
        ("MRR@10 {}; the passage that is shown has the sentence in {} % of the queries, of which "
         "{} % find the document", of("relevance_deep", "mrr_10"),
         *(100 * of("relevance_deep", name) for name in ("shown", "found"))),
        ("Precision at 10: BM25 {}, with stems {}, words and codes {}, MiniLM {}, all three "
         "together {}.", by_hand("BM25"), *map(by_hand, CONTENDERS)),
        ("Written at {} documents a second, encoding included; FTS5 alone takes {}.",
         of("words", "documents_per_second"), of("words", "fts5", "documents_per_second")),
        ("On disk {} bytes a document, {} times the texts, of which the word index has {} (FTS5 "
         "{})",
         of("words", "disk_bytes_per_document"), of("words", "disk_to_texts"),
         of("words", "word_index_bytes_per_document"), of("words", "fts5", "bytes_per_document")),
        ("The first query of a process takes {} s", of("words", "first_query_ms") / 1000),
        ("for the {} words of at least five", explained("words_of_bits", "words")[0]),
        ("its rank correlation with the truth is {} to {}",
         min(explained("words_of_bits", "gradient", "rank_correlation")),
         max(explained("words_of_bits", "gradient", "rank_correlation"))),
        ("Of the strongest tenth of the effects {} % or more have the right sign",
         100 * min(explained("words_of_bits", "gradient", "right_sign_strongest_tenth"))),
        ("of the ten words listed for each value of each bit {} % or more",
         100 * min(explained("words_of_bits", "gradient", "right_sign_listed"))),
        ("a sentence takes {} ms", mean(explained("milliseconds", "sentence of 11 words"))),
        ("a long post of 303 distinct words {} ms",
         max(explained("milliseconds", "post of 303 distinct words"))),
        ("1,244 distinct words, takes {} ms",
         max(explained("milliseconds", "post of 1244 distinct words"))),
        ("The vectors themselves, 1,536 bytes, have {} / {}; their signs, 48 bytes, {} / {}.",
         *(of("vectors_only", "rows", i, key) for i in (0, 1)
           for key in ("precision", "neighbours"))),
    ],
    "docs/deployment.md": lambda: [
        ("In a test of {} searches [none failed]", of("restart", "searches")),
    ],
    "docs/operations.md": lambda: [
        ("Of {} processes that were killed", sum(row["kills"] for row in worked_tables.steps())),
    ],
    "docs/relevance.md": lambda: [
        ("mean nDCG@10 {}, beside {} of BM25 with stems and {} of all-MiniLM-L6-v2; with MiniLM as "
         "a second code {}.", *(of_seven(CONTENDERS[i]) for i in (1, 0, 2, 3))),
        ("the first ten have {} to {} points more of its topic", *beyond_words([REUTERS, NEWS])),
        ("{} to {} points above BM25 on stems",
         *(of(beyond_words(f"{task}_documents" for task in ("reuters", "newsgroups", "snippets")))
           for of in (min, max))),
        ("{} ms for a few words, {} ms for a whole post",
         *(of("words", "queries", kind, "store", "median_ms")
           for kind in ("subjects", "whole posts"))),
    ],
    "docs/explain.md": lambda: [
        ("of the ten words listed for each value of each bit {} % or more",
         100 * min(explained("words_of_bits", "gradient", "right_sign_listed"))),
        ("a coordinate's mean square is {} to {}, not 1",
         min(explained("mean_square")), max(explained("mean_square"))),
    ],
    "docs/howto/duplicates.md": lambda: [
        ("with {} planted copies, {} texts, {} pairs at least {} similar",
         *(of("duplicates", key) for key in
           ("copies", "documents", "similar_pairs", "similarity"))),
    ],
    "CHANGELOG.md": lambda: [("{} mutated files are tried by", of("fuzz", "mutants"))],
}  # fmt: skip


def found_in(page, sentence):
    """Return the numbers of a sentence as they are shown, wherever lines break."""
    parts = [re.escape(part) for part in " ".join(sentence.split()).split("{}")]
    text = " ".join((ROOT / page).read_text().split())
    match = re.search(NUMBER.join(parts).replace(r"\ ", " "), text)
    assert match, f"{page} has no sentence like {sentence!r}: change its pattern in this file"
    return match.groups()


def is_rounded(shown, value):
    """Say whether a number as shown is a value, rounded to the digits it has.

    Zeros at the end of a whole number need not count, up to a twentieth: 692,000 is 692,100.
    """
    digits = shown.replace(",", "")
    decimals = len(digits.partition(".")[2])
    zeros = len(digits) - len(digits.rstrip("0")) if float(digits) and not decimals else 0
    fine = 0.5 * 10.0**-decimals
    return abs(float(digits) - value) <= max(fine, min(fine * 10**zeros, 0.05 * value)) + 1e-9


@pytest.mark.parametrize("page", CLAIMS)
def test_numbers_in_prose_are_those_of_results(page):
    wrong = []
    for sentence, *values in CLAIMS[page]():
        for shown, value in zip(found_in(page, sentence), values, strict=True):
            if not is_rounded(shown, value):
                wrong.append(f"{shown} is {value:.6g}: {sentence}")
    assert not wrong, "\n".join([f"{page} is not what results say:", *wrong])


def test_rounding_is_that_of_the_digits_shown():
    assert is_rounded("0.59", 0.592) and not is_rounded("0.59", 0.596)
    assert is_rounded("692,000", 692_100) and not is_rounded("692,100", 692_000)
    assert is_rounded("0", 0) and not is_rounded("0", 1) and not is_rounded("100", 140)


def test_pages_name_only_scripts_and_results_that_are_there():
    for page in PAGES:
        for name in re.findall(
            r"\b((?:bench_)\w+\.py|results/[\w/-]+\.jsonl?(?:\.gz)?)", page.read_text()
        ):
            places = [BENCHMARKS / name, ROOT / name]
            assert any(place.exists() for place in places), f"{page.name} names {name}"


def test_every_result_is_shown_and_has_a_script(monkeypatch):
    read, asked = common.read, set()
    spy = lambda name: (asked.add(name), read(name))[1]  # noqa: E731
    for module in list(sys.modules.values()):
        if getattr(module, "read", None) is read:
            monkeypatch.setattr(module, "read", spy)
    tables.pages()
    source = Path(__file__).read_text()
    scripts = [path.stem.removeprefix("bench_") for path in BENCHMARKS.glob("*.py")]
    for path in common.RESULTS.glob("*.json"):
        name = path.stem
        assert name in asked or f'"{name}"' in source, f"nobody shows results/{name}.json"
        assert any(name == s or name.startswith(f"{s}_") for s in scripts), f"nothing makes {name}"
