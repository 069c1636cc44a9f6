"""What a store finds by words and codes, beside BM25, BM25 with stems, and MiniLM.

    VDSH_DATA=path/to/data python benchmarks/bench_relevance.py [--embed sentence-transformers:NAME]
        [--vectors FOLDER] [--tasks cacm,med] [--jobs 8] [--only deep]

A model of 128 bits learns the documents of each task without labels, as `vdsh fit` does with a
tenth of them held out, and a store of them answers the queries. The tasks are in
`relevance_tasks.py`; with `--tasks` only some, printed and not recorded. Models are kept in
`build/relevance`, so that another rule can be tried in minutes. Vectors are read from the folder,
where `med.documents.npy` and `med.queries.npy` have a row for each of that task; those that are
missing there are made with `--embed`, and kept. `deep` asks for sentences in the
second half of long documents.
"""

import hashlib
import multiprocessing
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import ROOT, run, show, times
from relevance_tasks import LANGUAGES, SEVEN, TASKS, Task, load, long_documents

from vdsh import Document, JointModel, TextHasher, VectorHasher, open_store
from vdsh.embed import embed
from vdsh.hashers import HASHERS
from vdsh.paper.settings import GRAPH, METHOD
from vdsh.text.tokenizer import tokenize

NEAREST = 100  # kept of each ranking
TIMED = 200  # queries that are asked one at a time, for ten hits; their vectors are there
BITS, VECTOR_BITS = 128, 256
METHODS = ("linear", "vdsh")
KEPT = ROOT / "build" / "relevance"
SHOWN = 0.7  # of a sentence's words, in the passage that is shown


class Contender(NamedTuple):
    """A way to rank: `ask` returns the rows of the best documents for each query."""

    name: str
    ask: Callable[..., list]  # with queries, and how many hits of each
    code_bytes: int = 0  # a document, beside its words


def measure(given):
    names = given.tasks.split(",") if given.tasks else ["med"] if given.quick else list(TASKS)
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        rows = sum(pool.map(partial(measure_task, given=given), names), [])
    if given.tasks:
        return show({"rows": rows})
    return {"rows": rows, "mean": mean_of_seven(rows)}


def measure_task(name, given):
    warnings.simplefilter("ignore")
    task, rows = load(name), []
    with tempfile.TemporaryDirectory() as folder:
        for contender in contenders(name, task, folder, given):
            rows.append({"task": name} | judge(task, contender))
            print(rows[-1], flush=True)
    return rows


def contenders(name, task, folder, given):
    """Give those of a task, each when the one before was measured."""
    yield from (words(task, stems) for stems in ("", LANGUAGES.get(name, "english")))
    embedded = vectors_of(name, task, given)
    if embedded:
        yield by_vectors(task, *embedded)
    for method in METHODS:
        made = fitted(task, method, quick=given.quick)
        if embedded and len(task.texts) >= VECTOR_BITS:
            yield from with_vectors(task, method, made, f"{folder}/joint-{method}", *embedded)
        with open_store(f"{folder}/{method}", made) as store:
            store.upsert(Document(f"{row:06}", text) for row, text in enumerate(task.texts))
            for ranking, rank in (("words and codes", "relevance"), ("codes", "expected")):

                def ask(queries, k=NEAREST, rank=rank, store=store):
                    answers = store.search_many(queries, k, rank=rank)
                    return [[int(hit.id) for hit in hits] for hits in answers]

                yield Contender(f"{ranking}, {method}", ask, BITS // 8)


def fitted(task: Task, method: str = "linear", *, quick: bool = False) -> TextHasher:
    """Learn a model from the documents of a task, or take the one that is kept."""
    settings = {"epochs": 1} if quick and method == "vdsh" else {}
    learned = METHOD[method], GRAPH, HASHERS[method](BITS).get_params()
    facts = repr((method, learned, settings, task.texts)).encode()
    folder = KEPT / hashlib.sha256(facts).hexdigest()[:16]
    if folder.exists():
        return TextHasher.load(folder)
    order = np.random.RandomState(0).permutation(len(task.texts))
    held_out, train = np.split(order, [len(order) // 10])
    some = [[task.texts[i] for i in np.sort(rows)] for rows in (train, held_out)]
    hasher = TextHasher(method, BITS, random_state=0, **settings)
    hasher.fit(some[0], validation=(some[1], None), progress=False)
    hasher.save(folder)
    return hasher


def words(task: Task, stems: str) -> Contender:
    """Rank by bm25s, with its own stop words and Snowball's stems."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer(stems) if stems else None
    read = {"stopwords": "en", "stemmer": stemmer, "show_progress": False, "return_ids": False}
    index = bm25s.BM25(k1=1.2, b=0.75)
    index.index(bm25s.tokenize(task.texts, **read), show_progress=False)

    def ask(queries, _=NEAREST):
        found = []
        for some in bm25s.tokenize(queries, **read):
            known = [word for word in some if word in index.vocab_dict]
            scores = index.get_scores(known) if known else np.zeros(len(task.texts))
            found.append(best(scores))
        return found

    return Contender("BM25 with stems" if stems else "BM25", ask)


def vectors_of(name: str, task: Task, given) -> list:
    """Read the vectors of documents and queries, or make and keep them; none without options."""
    if not given.vectors and not given.embed:
        return []
    found = []
    for kind, texts in (("documents", task.texts), ("queries", task.queries)):
        file = Path(given.vectors or KEPT / "vectors") / f"{name}.{kind}.npy"
        if given.embed and not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, embed(texts, given.embed))
        found.append(np.load(file))
        if len(found[-1]) != len(texts):
            raise SystemExit(f"{file} has {len(found[-1])} rows for {len(texts)} {kind}.")
    return found


def by_vectors(task: Task, documents, asked) -> Contender:
    """Rank by the cosine of vectors."""
    documents, asked = unit(documents), dict(zip(task.queries, unit(asked), strict=True))

    def ask(queries, _=NEAREST):
        return [best(asked[query] @ documents.T) for query in queries]

    return Contender("MiniLM", ask, documents[0].nbytes)


def with_vectors(task: Task, method: str, topic: TextHasher, place: str, documents, asked):
    """Rank by words, topic and the bits of vectors, as a store does."""
    known = dict(zip(task.queries, asked, strict=True))
    model = JointModel(topic, VectorHasher(VECTOR_BITS, random_state=0).fit(documents))
    rows = [Document(f"{row:06}", text) for row, text in enumerate(task.texts)]
    with open_store(place, model) as store:
        store.upsert(rows, vectors=documents)

        def ask(queries, k=NEAREST):
            answers = (store.search(query, k, vector=known[query]) for query in queries)
            return [[int(hit.id) for hit in hits] for hits in answers]

        yield Contender(f"words, codes and MiniLM, {method}", ask, model.n_bits // 8)


def best(scores):
    return np.argsort(-scores, kind="stable")[:NEAREST]


def unit(some):
    return some / np.maximum(np.linalg.norm(some, axis=1, keepdims=True), 1e-9)


# -- what rankings are worth ----------------------------------------------------------------------


def judge(task: Task, contender: Contender) -> dict:
    """Measure the rankings of all queries, and the time of some that are asked alone."""
    found = contender.ask(task.queries)
    seconds = times(lambda query: contender.ask([query], 10), task.queries[:TIMED])
    values = {}
    if any(task.judged):
        pairs = list(zip(found, task.judged, strict=True))
        values["ndcg_10"] = np.mean([ndcg(rows, judged) for rows, judged in pairs])
        values["mrr_10"] = np.mean([reciprocal(rows, judged) for rows, judged in pairs])
        good = [sum(judged.get(int(row), 0) > 0 for row in rows[:10]) for rows, judged in pairs]
        values["precision_10"] = np.mean(good) / 10
        values["recall_100"] = np.mean([recall(rows, judged) for rows, judged in pairs])
    if any(task.query_labels):
        alike = [[not wanted.isdisjoint(task.labels[row]) for row in rows[:10]]
                 for rows, wanted in zip(found, task.query_labels, strict=True)]  # fmt: skip
        values["topic_precision_10"] = sum(map(sum, alike)) / (10 * len(alike))
    values["median_ms"] = 1000 * np.median(seconds)
    rounded = {name: round(float(value), 4) for name, value in values.items()}
    return {"ranking": contender.name, "code_bytes": contender.code_bytes} | rounded


def ndcg(rows, judged: dict, k: int = 10) -> float:
    """Compute nDCG with linear gain; what nobody judged counts as 0. As trec_eval does."""
    discounts = 1 / np.log2(np.arange(2, k + 2))
    gains = [judged.get(int(row), 0) for row in rows[:k]]
    ideal = sorted(judged.values(), reverse=True)[:k]
    most = np.dot(ideal, discounts[: len(ideal)])
    return float(np.dot(gains, discounts[: len(gains)]) / most) if most else 0.0


def reciprocal(rows, judged: dict, k: int = 10) -> float:
    return next((1 / (i + 1) for i, row in enumerate(rows[:k]) if judged.get(int(row), 0) > 0), 0.0)


def recall(rows, judged: dict) -> float:
    wanted = {row for row, grade in judged.items() if grade > 0}
    return len(wanted.intersection(map(int, rows))) / max(1, len(wanted))


def mean_of_seven(rows: list[dict]) -> list[dict]:
    """Average the judged collections: quality, bytes a document, and time of a query."""
    found = []
    for ranking in dict.fromkeys(row["ranking"] for row in rows):
        some = [row for row in rows if row["ranking"] == ranking and row["task"] in SEVEN]
        means = {
            name: round(float(np.mean([row[name] for row in some])), 4)
            for name in ("ndcg_10", "mrr_10", "recall_100", "code_bytes", "median_ms")
        }
        found += [{"ranking": ranking, "collections": len(some)} | means] if some else []
    return found


# -- sentences deep in long documents -------------------------------------------------------------


def deep(given):
    """Ask for sentences of the second half of long documents: which are found, and which shown."""
    warnings.simplefilter("ignore")
    texts, asked = long_documents(20 if given.quick else 200)
    task = Task(texts, [sentence for _, sentence in asked], [{row: 1} for row, _ in asked])
    places, found, shown = [], [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(f"{folder}/s", fitted(task, quick=given.quick)) as store,
    ):
        store.upsert(Document(f"{row:06}", text) for row, text in enumerate(texts))
        for (row, sentence), hits in zip(asked, store.search_many(task.queries), strict=True):
            places.append(reciprocal([int(hit.id) for hit in hits], {row: 1}))
            right = [hit.passage() for hit in hits if int(hit.id) == row]
            found.append(bool(right))
            wanted = set(tokenize(sentence))
            has = [len(wanted & set(tokenize(passage))) / len(wanted) for passage in right]
            shown.append(any(share >= SHOWN for share in has))
    facts = {"documents": len(texts), "queries": len(asked)}
    means = {"mrr_10": np.mean(places), "found": np.mean(found), "shown": np.mean(shown)}
    return facts | {name: value.round(4) for name, value in means.items()}


if __name__ == "__main__":
    run({"contenders": measure, "deep": deep}, jobs=1, embed=str, vectors=str, tasks=str)
