import gzip
import json
from math import log, log2

import numpy as np
import pytest

from conftest import QUICK, toy_corpus
from vdsh import Document, TextHasher, open_store
from vdsh.errors import InputError, MissingFileError
from vdsh.evaluation import Query, evaluate_queries, rankings, read_queries
from vdsh.evaluation.rankings import ndcg, recall, reciprocal_rank, search_words
from vdsh.store.queries import RANKS
from vdsh.text import tokenize

TEXTS = {
    "a": "mars rover finds water on mars",
    "b": "water polo match",
    "c": "a rover of the mars mission and its wheels",
    "d": "the a of",  # stop words only
    "e": "chess opening",
    "f": "chess opening",
}
MEASURES = ["MRR@10", "NDCG@10", "recall@100"]


def by_words(query, ranking, k=10, texts=TEXTS):
    return next(search_words(list(texts), list(texts.values()), [query], "smart", k)[ranking])


# Measures, worked by hand; ranx 0.3 gives the same on 300 random rankings, to the last digit


def test_reciprocal_rank_is_that_of_the_first_relevant_document_among_ten():
    found = [f"d{i}" for i in range(1, 21)]
    assert reciprocal_rank(found, {"d4": 1, "d9": 3}, k=10) == 1 / 4
    assert reciprocal_rank(found, {"d10": 1}, k=10) == 1 / 10
    assert reciprocal_rank(found, {"d11": 1}, k=10) == 0
    assert reciprocal_rank([], {"d1": 1}, k=10) == 0


def test_recall_is_the_share_of_all_relevant_documents():
    assert recall(["a", "b", "c"], {"a": 1, "c": 2, "x": 1, "y": 1}, k=2) == 1 / 4
    assert recall(["a", "b", "c"], {"a": 1, "c": 2, "x": 1, "y": 1}, k=3) == 2 / 4
    assert recall([], {"a": 1}, k=100) == 0


def test_ndcg_weighs_gains_by_rank_against_the_best_order():
    gains = {"a": 3, "b": 2, "c": 1}
    assert ndcg(["a", "b", "c"], gains, k=10) == 1
    assert ndcg(["b", "x", "a"], gains, k=10) == pytest.approx(
        (2 + 3 / log2(4)) / (3 + 2 / log2(3) + 1 / log2(4))
    )
    assert ndcg(["x", "b", "a"], gains, k=2) == pytest.approx(
        (2 / log2(3)) / (3 + 2 / log2(3))  # neither list goes beyond the cut
    )
    assert ndcg(["x"], gains, k=10) == ndcg([], gains, k=10) == 0


# BM25 and tf-idf


def slow_bm25(query, texts):
    """BM25 as its formula reads, over words that are no stop words."""
    stop = {"the", "a", "of", "on", "and", "its"}
    documents = {id: [w for w in tokenize(text) if w not in stop] for id, text in texts.items()}
    average = np.mean([len(words) for words in documents.values()])
    scores = {}
    for id, words in documents.items():
        score = 0.0
        for word in tokenize(query):
            df = sum(word in other for other in documents.values())
            idf = max(log((len(texts) - df + 0.5) / (df + 0.5)), 1e-6)
            tf = words.count(word)
            score += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(words) / average))
        scores[id] = score
    return sorted((id for id in scores if scores[id] > 0), key=lambda id: (-scores[id], id))


@pytest.mark.parametrize(
    "query", ["mars water", "rover", "chess", "polo wheels", "rover rover water"]
)
def test_bm25_ranks_as_its_formula_says(query):
    assert by_words(query, "BM25") == slow_bm25(query, TEXTS)


def test_bm25_agrees_with_the_slow_version_on_many_documents():
    texts = {f"d{i:02}": text for i, text in enumerate(toy_corpus()[0])}
    for query in ("orbit moon", "goal season coach", "rocket stadium crew goal"):
        assert by_words(query, "BM25", 80, texts) == slow_bm25(query, texts)


def test_tf_idf_ranks_by_cosine():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = {f"d{i:02}": text for i, text in enumerate(toy_corpus()[0])}
    bag = TfidfVectorizer()
    documents = bag.fit_transform(texts.values())
    cosines = (documents @ bag.transform(["rocket stadium crew"]).T).toarray().ravel()
    best = sorted(np.flatnonzero(cosines), key=lambda i: (-round(cosines[i], 9), i))[:10]
    found = by_words("rocket stadium crew", "tf-idf", 10, texts)
    values = dict(zip(texts, cosines, strict=True))
    assert [values[id] for id in found] == pytest.approx([cosines[i] for i in best])


@pytest.mark.parametrize("ranking", ["BM25", "tf-idf"])
def test_words_find_only_documents_that_have_one(ranking):
    assert by_words("the of", ranking) == []
    assert by_words("xyzzy", ranking) == []
    assert by_words("chess", ranking) == ["e", "f"]  # a tie, by id
    assert by_words("chess", ranking, k=1) == ["e"]


# Reading


@pytest.fixture
def read(tmp_path):
    """Write a file and read the queries in it."""

    def read(name, content, qrels=None, **options):
        (tmp_path / name).write_text(content)
        if qrels is None:
            return read_queries(tmp_path / name, **options)
        (tmp_path / "qrels").write_text(qrels)
        return read_queries(tmp_path / name, tmp_path / "qrels", **options)

    return read


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "q.jsonl",
            '{"query": "mars rover", "relevant": ["a", "c"]}\n'
            '{"query": "polo", "relevant": {"b": 1}}\n',
        ),
        (
            "q.jsonl",
            '{"query": "mars rover", "relevant": "a"}\n{"query": "polo", "relevant": ["b"]}\n'
            '{"query": "mars rover", "relevant": ["c"]}\n',
        ),
        ("q.csv", "query,relevant\nmars rover,a c\npolo,b\n"),
        ("q.csv", 'query;relevant\nmars rover;"a;c"\npolo;b\n'),
        ("q.csv", 'query,relevant,by\nmars rover,"[""a"", ""c""]",me\npolo,b,me\n'),
        ("q.csv", "query,relevant\nmars rover,a\nmars rover,c\npolo,b\n"),
        ("q.tsv", "query\trelevant\tgain\nmars rover\ta\t1\nmars rover\tc\t1\npolo\tb\t1\n"),
    ],
)
def test_queries_with_relevant_ids_are_read(read, name, content):
    queries = read(name, content)
    assert queries == [
        Query("mars rover", {"a": 1, "c": 1}, "mars rover"),
        Query("polo", {"b": 1}, "polo"),
    ]


def test_gains_ids_and_other_field_names_are_read(read):
    assert read("q.jsonl", '{"id": 7, "query": "polo", "relevant": {"b": 2, "c": 0.5}}') == [
        Query("polo", {"b": 2, "c": 0.5}, "7")
    ]
    assert read("q.csv", "query,relevant,gain\npolo,b,2\n")[0].relevant == {"b": 2}
    assert read("q.jsonl", '{"query": "polo", "relevant": [12]}')[0].relevant == {"12": 1}
    given = {"text_field": "q", "labels_field": "docs"}
    assert read("q.csv", "q,docs\npolo,b\n", **given)[0].relevant == {"b": 1}


def test_the_same_text_under_two_ids_is_two_queries(read):
    found = read("q.csv", "id,query,relevant\n1,polo,b\n2,polo,c\n1,polo,d\n")
    assert found == [Query("polo", {"b": 1, "d": 1}, "1"), Query("polo", {"c": 1}, "2")]


def test_packed_queries_are_read(tmp_path):
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"query": "polo", "relevant": ["b"]}\n'))
    assert read_queries(path)[0].text == "polo"


def test_parquet_is_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"query": ["polo"], "relevant": [["b", "c"]]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "q.parquet")
    assert read_queries(tmp_path / "q.parquet") == [Query("polo", {"b": 1, "c": 1}, "polo")]


@pytest.mark.parametrize(
    ("name", "topics"),
    [
        ("topics.tsv", "q1\tmars rover\nq2\tpolo\n"),
        ("topics.txt", "q1\tmars rover\nq2\tpolo\n"),
        ("topics.jsonl", '{"id": "q1", "text": "mars rover"}\n{"id": "q2", "text": "polo"}\n'),
        ("topics.jsonl", '{"_id": "q1", "text": "mars rover"}\n{"_id": "q2", "text": "polo"}\n'),
        ("topics.csv", "id,text\nq1,mars rover\nq2,polo\n"),
    ],
)
@pytest.mark.parametrize(
    "qrels",
    [
        "q1 0 a 2\nq1 0 b 0\nq1  Q0 c 1\nq2 0 b -1\nq9 0 a 1\n",
        "q1\t0\ta\t2\nq1\t0\tb\t0\nq1\t0\tc\t1\nq2\t0\tb\t-1\nq9\t0\ta\t1\n",
        "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\nq1\tc\t1\nq2\tb\t-1\n",
    ],
)
def test_topics_and_judgements_are_read_as_trec_and_beir_write_them(read, name, topics, qrels):
    assert read(name, topics, qrels) == [
        Query("mars rover", {"a": 2, "b": 0, "c": 1}, "q1"),
        Query("polo", {"b": -1}, "q2"),
    ]


def test_judgements_of_three_columns_need_no_header(read):
    assert read("t.tsv", "q1\tmars\n", "q1\ta\t1.5\nq1\tb\t1\n")[0].relevant == {"a": 1.5, "b": 1}


def test_a_topic_without_judgements_has_no_relevant_documents(read):
    assert read("t.tsv", "q1\tmars\nq2\tpolo\n", "q1 0 a 1\n")[1] == Query("polo", {}, "q2")


LINE = '{"query": "polo", "relevant": ["b"]}\n'


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("q.jsonl", "", r"q.jsonl' holds no queries. Write JSON lines such as"),
        ("q.jsonl", LINE + '{"query": "x"}', r"line 2: no field 'relevant'. Write JSON lines"),
        ("q.jsonl", LINE + '{"relevant": ["a"]}', r"line 2: no field 'query'"),
        ("q.jsonl", '{"text": "x", "relevant": ["a"]}', r"no field 'query'. .*--text-field"),
        ("q.jsonl", '{"query": " ", "relevant": ["a"]}', "line 1: the query is empty"),
        ("q.jsonl", '{"query": 5, "relevant": ["a"]}', "must be a string. Got 'query': 5"),
        ("q.jsonl", '{"query": "x", "relevant": []}', "line 1: relevant is empty. Name a"),
        ("q.jsonl", '{"query": "x", "relevant": {}}', "relevant is empty"),
        ("q.jsonl", '{"query": "x", "relevant": null}', "relevant is empty"),
        ("q.jsonl", '{"query": "x", "relevant": [["a"]]}', "must be a list of ids. Got"),
        ("q.jsonl", '{"query": "x", "relevant": true}', "must be a list of ids. Got True"),
        ("q.jsonl", '{"query": "x", "relevant": ["a", "a"]}', "relevant names an id twice"),
        ("q.jsonl", '{"query": "x", "relevant": {"a": "much"}}', "a gain must be a number. Got"),
        ("q.jsonl", '{"query": "x", "relevant": {"a": NaN}}', "a gain must be a number. Got nan"),
        ("q.jsonl", '{"query": "x", "relevant": {"a": 1e999}}', "a gain must be a number. Got inf"),
        ("q.jsonl", '{"query": "x", "relevant": {"a": true}}', "a gain must be a number. Got True"),
        ("q.jsonl", LINE + LINE, "line 2: 'b' is named twice for 'polo'. Remove one."),
        ("q.jsonl", "[" + LINE + "]", "line 1: broken JSON"),
        ("q.csv", "query,ids\npolo,b\n", "no column 'relevant'. There are 'query', 'ids'"),
        ("q.csv", "topic,relevant\npolo,b\n", "no column 'query'"),
        ("q.csv", "query,relevant\npolo,\n", "line 2: relevant is empty"),
        ("q.csv", "query,relevant\npolo\n", "line 2: no field 'relevant'"),
        ("q.csv", "query,relevant\npolo,[b\n", "line 2: '.b' is not JSON"),
        ("q.csv", "query,relevant,gain\npolo,b,high\n", "a gain must be a number. Got 'high'"),
        (
            "q.csv",
            "id,query,relevant\n1,polo,b\n1,chess,e\n",
            "line 3: query '1' was 'polo' before. Give each its own id.",
        ),
        ("q.txt", "polo\n", "q.txt' does not say which documents are relevant. Write JSON"),
        ("q.xml", "<top>", "Cannot tell the format of"),
    ],
)
def test_what_is_wrong_with_a_file_of_queries_is_said(read, name, content, sentence):
    with pytest.raises(InputError, match=sentence):
        read(name, content)


@pytest.mark.parametrize(
    ("topics", "qrels", "sentence"),
    [
        ("q1 polo\n", "q1 0 b 1\n", "line 1: not an id, a tab and a text: 'q1 polo'"),
        ("q1\tpolo\nq1\tchess\n", "q1 0 b 1\n", "line 2: query 'q1' stands there twice"),
        ("", "q1 0 b 1\n", "holds no queries"),
        ("q1\tpolo\n", "", "qrels' holds no judgements. Write `query-id 0 document-id gain`"),
        ("q1\tpolo\n", "q1 b\n", "line 1: 2 columns: 'q1 b'. Write"),
        ("q1\tpolo\n", "q1 0 b 1 x\n", "line 1: 5 columns"),
        ("q1\tpolo\n", "q1 0 b yes\n", "line 1: a gain must be a number. Got 'yes'"),
        ("q1\tpolo\n", "q1 0 b 1\nq1 0 b 2\n", "line 2: 'b' is judged twice for query 'q1'"),
        ("q1\tpolo\n", "7 0 b 1\n", "judges none of the queries: it names '7', they .* 'q1'"),
    ],
)
def test_what_is_wrong_with_topics_and_judgements_is_said(read, topics, qrels, sentence):
    with pytest.raises(InputError, match=sentence):
        read("topics.tsv", topics, qrels)


def test_topics_need_ids(read):
    with pytest.raises(InputError, match="line 1: no id in the field 'id'. .*--id-field"):
        read("topics.jsonl", '{"number": "q1", "text": "polo"}', "q1 0 b 1\n")


def test_a_cut_or_missing_file_of_queries_is_said(tmp_path):
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(LINE.encode())[:-9])
    with pytest.raises(InputError, match="q.jsonl.gz' is cut off or damaged gzip"):
        read_queries(tmp_path / "q.jsonl.gz")
    with pytest.raises(MissingFileError, match="No file or folder"):
        read_queries(tmp_path / "none.jsonl")
    topics = tmp_path / "topics.tsv"
    topics.write_text("q1\tpolo\n")
    with pytest.raises(MissingFileError, match="No file or folder"):
        read_queries(topics, tmp_path / "none")
    (tmp_path / "qrels.gz").write_bytes(gzip.compress(b"q1 0 b 1\n")[:-9])
    with pytest.raises(InputError, match="qrels.gz' is cut off or damaged gzip"):
        read_queries(topics, tmp_path / "qrels.gz")


# Measuring a store


def made(folder, hasher, texts):
    with open_store(folder, hasher) as store:
        store.upsert(Document(id, text) for id, text in texts.items())
    return folder


@pytest.fixture(scope="module")
def place(fitted, tmp_path_factory):
    texts = {f"d{i}": text for i, text in enumerate(toy_corpus()[0])}
    return made(tmp_path_factory.mktemp("stores") / "toy-store", fitted, texts)


@pytest.fixture
def store(place):
    with open_store(place) as store:
        yield store


def some_queries(n=8):
    """Ask for documents by their first three words; they may be found by more than these."""
    texts = toy_corpus()[0][:n]
    return [Query(" ".join(text.split()[:3]), {f"d{i}": 1}) for i, text in enumerate(texts)]


def test_every_rank_of_the_store_is_measured_beside_bm25_and_tf_idf(store):
    found = evaluate_queries(store, some_queries())
    assert [row.name for row in found.rows] == [*RANKS, "BM25", "tf-idf"]
    assert all(list(row.values) == MEASURES for row in found.rows)
    assert (len(found.queries), found.n_documents, found.n_unjudged) == (8, 80, 0)
    assert (found.missing, found.left_out) == ([], {})


def test_values_are_those_of_the_searches(store):
    queries = some_queries()
    for row in evaluate_queries(store, queries).rows[: len(RANKS)]:
        for i, query in enumerate(queries):
            hits = [hit.id for hit in store.search(query.text, 100, rank=row.name)]
            rank = hits.index(f"d{i}") + 1 if f"d{i}" in hits else 999
            assert row.values["MRR@10"][i] == (1 / rank if rank <= 10 else 0)
            assert row.values["NDCG@10"][i] == (1 / log2(1 + rank) if rank <= 10 else 0)
            assert row.values["recall@100"][i] == (rank <= 100)


def test_means_have_standard_errors_and_a_comparison_with_bm25(store):
    distance, *_, bm25, _ = evaluate_queries(store, some_queries()).rows
    values = distance.values["MRR@10"]
    assert distance.means["MRR@10"] == pytest.approx(values.mean())
    assert distance.errors["MRR@10"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(8))
    comparison = distance.against_bm25["MRR@10"]
    assert comparison.difference == pytest.approx(values.mean() - bm25.means["MRR@10"])
    assert 0 <= comparison.p_value <= 1
    assert bm25.against_bm25 == {}


def test_k_is_how_far_recall_looks(store):
    (row, *_) = evaluate_queries(store, some_queries(), k=3).rows
    assert list(row.values) == ["MRR@10", "NDCG@10", "recall@3"]
    assert row.means["recall@3"] <= 1
    whole = evaluate_queries(store, some_queries()).rows[0]
    assert (row.values["MRR@10"] == whole.values["MRR@10"]).all()


def test_a_single_query_has_no_error_and_five_prove_nothing(store):
    (row, *_) = evaluate_queries(store, some_queries(1)).rows
    assert row.errors["MRR@10"] is None
    rows = evaluate_queries(store, some_queries(5)).rows
    assert all(row.against_bm25 == {} for row in rows)


def test_documents_that_are_not_relevant_do_not_count(store):
    text = toy_corpus()[0][0]
    both = evaluate_queries(store, [Query(text, {"d0": 1, "d1": 0, "d3": -1})]).rows
    one = evaluate_queries(store, [Query(text, {"d0": 1})]).rows
    assert [row.means for row in both] == [row.means for row in one]


def test_queries_without_relevant_documents_are_left_out_and_counted(store):
    found = evaluate_queries(store, [*some_queries(2), Query("orbit", {}), Query("x", {"d1": 0})])
    assert (len(found.queries), found.n_unjudged) == (2, 2)


def test_relevant_documents_that_the_store_lacks_count_as_not_found(store):
    text = toy_corpus()[0][0]
    found = evaluate_queries(store, [Query(text, {"d0": 1, "elsewhere": 1})])
    assert found.missing == ["elsewhere"]
    assert next(row for row in found.rows if row.name == "BM25").means["recall@100"] == 0.5


def test_a_rank_that_the_model_cannot_do_is_left_out_with_a_word(tmp_path):
    texts = {f"d{i}": text for i, text in enumerate(toy_corpus()[0])}
    hasher = TextHasher("lsh", 16, random_state=0).fit(list(texts.values()))
    with open_store(made(tmp_path / "store", hasher, texts)) as store:
        found = evaluate_queries(store, some_queries(2))
    assert "expected" not in [row.name for row in found.rows]
    assert "does not say how sure it is of a bit" in found.left_out["expected"]


def test_a_new_rank_of_the_store_is_measured_by_itself(store, monkeypatch):
    monkeypatch.setattr(rankings, "RANKS", (*RANKS, "unheard-of"))
    found = evaluate_queries(store, some_queries(2))
    assert "Got 'unheard-of'" in found.left_out["unheard-of"]


def test_words_that_the_model_does_not_know_count_for_bm25(fitted, tmp_path):
    texts = {"one": "orbit moon", "part": "moon crew zx81"}
    with open_store(made(tmp_path / "store", fitted, texts)) as store:
        found = evaluate_queries(store, [Query("zx81", {"part": 1})])
    means = {row.name: row.means["MRR@10"] for row in found.rows}
    assert (means["BM25"], means["tf-idf"]) == (1, 1)


def test_the_stop_words_of_the_model_do_not_count_for_bm25(tmp_path):
    texts = {f"d{i}": f"und {text}" for i, text in enumerate(toy_corpus()[0])}
    settings = QUICK | {"stop_words": ["und", "orbit"]}
    hasher = TextHasher("vdsh", 16, random_state=0, **settings).fit(list(texts.values()))
    with open_store(made(tmp_path / "store", hasher, texts)) as store:
        found = evaluate_queries(store, [Query("und orbit", {"d0": 1})])
    assert next(row for row in found.rows if row.name == "BM25").means["recall@100"] == 0


def test_progress_tells_what_is_done(store):
    told = []
    evaluate_queries(store, some_queries(3), progress=lambda *step: told.append(step))
    assert told[0] == ("reading documents", 80, 80)
    for name in ("distance", "BM25", "tf-idf"):
        assert [done for what, done, _ in told if what == f"searching by {name}"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("queries", "sentence"),
    [
        ([], "None of the 0 queries has a relevant document"),
        ([Query("orbit", {})], "None of the 1 queries has a relevant document"),
        ([Query(" ", {"d0": 1})], "Query 1: the text must not be empty. Got ' '."),
        ([Query(5, {"d0": 1}, "q")], "Query q: the text must not be empty. Got 5."),
        ([Query("orbit", ["d0"])], "must be a dict of ids and gains, such as .* Got .'d0'."),
        ([Query("x", {"a": 1, "b": 1})], "None of the 2 relevant ids is in the store: it has no"),
    ],
)
def test_what_is_wrong_with_queries_is_said(store, queries, sentence):
    with pytest.raises(InputError, match=sentence):
        evaluate_queries(store, queries)


def test_k_must_be_a_count(store):
    with pytest.raises(InputError, match="k must be"):
        evaluate_queries(store, some_queries(), k=0)


def test_an_empty_store_is_said(fitted, tmp_path):
    with open_store(made(tmp_path / "store", fitted, {})) as store:
        with pytest.raises(InputError, match="The store holds no documents"):
            evaluate_queries(store, some_queries())


# The command line


@pytest.fixture
def queries(tmp_path):
    lines = [{"query": q.text, "relevant": list(q.relevant)} for q in some_queries()]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "queries.jsonl"


def test_the_table_says_cut_offs_errors_and_differences(vdsh, place, queries):
    result = vdsh("evaluate", place, "--queries", queries)
    assert result.returncode == 0, result.stderr
    first, header, *rows, last = result.stdout.splitlines()
    assert first == "8 queries with 8 relevant documents; 80 documents in the store"
    assert header.split() == MEASURES
    assert [row.split()[0] for row in rows] == [*RANKS, "BM25", "tf-idf"]
    assert all("±" in row for row in rows)
    assert last.startswith("± standard error; + better or - worse than BM25 (paired t-test")


def test_a_difference_that_is_more_than_luck_has_a_sign(vdsh, place, queries):
    """Five words of a document find it by words; its code is that of forty others."""
    result = vdsh("evaluate", place, "--queries", queries)
    facts = json.loads(vdsh("evaluate", place, "--queries", queries, "--json").stdout)
    row = next(line for line in result.stdout.splitlines() if line.startswith("  distance"))
    comparison = facts["rankings"]["distance"]["MRR@10"]["against_bm25"]
    assert comparison["difference"] < 0 and comparison["p_value"] < 0.05
    assert " - " in row


def test_json_has_means_errors_and_comparisons(vdsh, place, queries):
    facts = json.loads(vdsh("evaluate", place, "--queries", queries, "--json").stdout)
    assert (facts["queries"], facts["documents"], facts["relevant"]) == (8, 80, 8)
    assert (facts["missing"], facts["left_out"], facts["unjudged"]) == ([], {}, 0)
    assert set(facts["rankings"]["BM25"]["MRR@10"]) == {"mean", "error"}
    with open_store(place) as store:
        row = evaluate_queries(store, some_queries()).rows[0]
    measured = facts["rankings"][row.name]["NDCG@10"]
    assert measured["mean"] == pytest.approx(row.means["NDCG@10"])
    assert measured["against_bm25"]["p_value"] == row.against_bm25["NDCG@10"].p_value


def test_topics_and_judgements_on_the_command_line(vdsh, place, tmp_path):
    (tmp_path / "topics.tsv").write_text("1\torbit moon\n2\tgoal match\n3\tcrew\n")
    (tmp_path / "qrels.txt").write_text("1 0 d0 1\n2 0 d1 1\n2 0 d999 1\n")
    arguments = ["evaluate", place, "--queries", "topics.tsv", "--qrels", "qrels.txt"]
    result = vdsh(*arguments)
    assert "2 queries with 3 relevant documents; 1 without one left out; 80" in result.stdout
    assert "too few queries to compare with BM25" in result.stdout
    assert (
        "Relevant ids that are not in the store count as not found: 1, such as 'd999'."
        in result.stderr
    )
    facts = json.loads(vdsh(*arguments, "-k", 5, "--json").stdout)
    assert "recall@5" in facts["rankings"]["BM25"] and facts["missing"] == ["d999"]


def test_fields_may_have_other_names(vdsh, place, tmp_path):
    (tmp_path / "q.csv").write_text("frage,treffer\norbit moon,d0 d2\n")
    names = ["--text-field", "frage", "--labels-field", "treffer"]
    result = vdsh("evaluate", place, "--queries", "q.csv", *names)
    assert "1 queries with 2 relevant documents" in result.stdout


def test_values_of_each_query_can_be_kept(vdsh, place, queries, tmp_path):
    arguments = ["evaluate", place, "--queries", queries, "--per-query", "values.json"]
    assert vdsh(*arguments).returncode == 0
    values = json.loads((tmp_path / "values.json").read_text())
    assert len(values["queries"]) == len(values["BM25"]["MRR@10"]) == 8
    assert vdsh(*arguments).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["docs.jsonl", "--queries", "queries.jsonl"], "leave out DATA, --database and --against"),
        (["--queries", "queries.jsonl", "--against", "m"], "leave out DATA, --database and"),
        (["--qrels", "qrels.txt"], "Give labelled documents or a corpus as DATA, or queries with"),
        ([], "Give labelled documents or a corpus as DATA, or queries with --queries"),
        (["--queries", "none.jsonl"], "No file or folder 'none.jsonl'"),
    ],
)
def test_options_that_do_not_go_together_are_said(vdsh, place, queries, arguments, sentence):
    result = vdsh("evaluate", place, *arguments)
    assert result.returncode == 1
    assert sentence in result.stderr


def test_a_model_is_no_store(vdsh, model_folder, queries):
    result = vdsh("evaluate", model_folder, "--queries", queries)
    assert result.returncode == 1
    assert "is a model, not a store" in result.stderr
