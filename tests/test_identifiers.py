"""Identifiers are names: typed whole, they find what has them whole."""

import pytest

from engines import doc, ids
from vdsh.documents import Document
from vdsh.store import open_store
from vdsh.text.languages import language
from vdsh.words import read_query
from vdsh.words.counting import find_names

pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

# Each name stands once, at the end of a longer text than those with its parts.
NAMES = {
    "FST_ERR_DUPLICATED_ROUTE": "fst err duplicated route, a duplicated route is an err",
    "FLASK_DEBUG": "debug flask: flask debug mode, debug",
    "child_process.execFile": "a child process may exec a file, exec file, process the child",
    "_KMeansCyWorkspace": "k means, cy, workspace: means of a workspace",
    "train_test_split": "train test split. Split, train and test. test-train-split",
    "__init__": "init, init and init",
    "textHasher": "a text hasher hashes text; a hasher of texts",
    "os.path": "the path of an os; os path",
}
FILLER = "This long page is about other matters of many kinds, said in many plain sentences. " * 8


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    with open_store(tmp_path_factory.mktemp("names") / "store") as store:
        store.upsert([doc("filler", FILLER)])
        for name, parts in NAMES.items():
            store.upsert([doc(f"{name}/whole", f"{FILLER} It calls {name} once.")])
            store.upsert([doc(f"{name}/parts{i}", parts) for i in range(3)])
        yield store


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("typed", ["{}", "what is {}", "{}()", "`{}`", "  {} "])
def test_a_name_typed_whole_finds_the_document_that_has_it_first(filled, name, typed):
    # Ids would tell it, too.
    hits = filled.search(typed.format(name), 20)
    assert name.lower() in hits[0].text.lower()
    assert not hits[0].related
    assert all(hit.related for hit in hits[1:] if name.lower() not in hit.text.lower())
    assert hits.warning is None


@pytest.mark.parametrize("name", NAMES)
def test_the_passage_shows_the_name(filled, name):
    hit = filled.search(name)[0]
    assert name in hit.passage()
    assert name in hit.passage(60)
    assert name.lower() == hit.words[0]


def test_case_does_not_matter(filled):
    assert ids(filled.search("flask_DEBUG", 1)) == ["FLASK_DEBUG/whole"]


def test_names_are_found_as_parts_of_longer_names(place):
    with open_store(place) as store:
        store.upsert(
            [
                doc("whole", FILLER + "See sklearn.model_selection.train_test_split(X, y)."),
                doc("parts", "train test split, model selection: train and test a split model"),
                doc("other", "the moon"),
            ]
        )
        for name in ("train_test_split", "model_selection.train_test_split", "model_selection"):
            hits = store.search(name)
            assert ids(hits)[0] == "whole"
            assert [hit.related for hit in hits[:2]] == [False, True]


def test_a_name_that_no_document_has_is_said_to_be_missing(place):
    with open_store(place) as store:
        store.upsert([doc("eg", "Use it, e.g. for a network."), doc("t", "a timeout of the net")])
        hits = store.search("E_TIMEOUT")
        assert hits.warning == "No document has 'E_TIMEOUT'. These have parts of it."
        assert [(hit.id, hit.related, hit.words) for hit in hits] == [("t", True, ("timeout",))]
        assert "With parts of it only:" in repr(hits)
        assert store.search("E_TIMEOUT", strict=True) == []
        nothing = store.search("ZORK_BLARG")
        assert nothing == [] and "No document has 'ZORK_BLARG'." in nothing.warning
        longer = store.search("why a network E_TIMEOUT")
        assert longer.warning == "No document has 'E_TIMEOUT'."
        assert not longer[0].related


def test_a_name_counts_more_than_its_parts_in_a_longer_query(place):
    with open_store(place) as store:
        store.upsert([doc(f"filler{i}", f"plain words {i}") for i in range(10)])
        store.upsert(
            [
                doc("whole", "We set FLASK_DEBUG before the server starts."),
                doc("parts", "We debug a flask before the server starts, flask by flask."),
            ]
        )
        assert ids(store.search("set FLASK_DEBUG before the server starts", 2))[0] == "whole"


def test_the_name_wins_however_rarely_a_long_document_has_it(place):
    with open_store(place) as store:
        long = "\n\n".join(f"{FILLER} Part {i}." for i in range(60))
        store.upsert([doc("long", f"{long} Call train_test_split. {long}")])
        store.upsert([doc(f"p{i:03}", "train test split " * 3) for i in range(150)])
        hits = store.search("train_test_split", 3)
        assert ids(hits)[0] == "long"
        assert "train_test_split" in hits[0].passage()


def test_a_filter_keeps_the_order(place):
    with open_store(place) as store:
        store.upsert(
            [doc("a", "debug flask debug flask", year=1), doc("b", "x FLASK_DEBUG", year=1)]
        )
        store.upsert([doc("c", "FLASK_DEBUG", year=2)])
        hits = store.search("FLASK_DEBUG", where={"year": 1})
        assert [(hit.id, hit.related) for hit in hits] == [("b", False), ("a", True)]


def test_a_misspelt_part_of_a_name_is_corrected(tmp_path):
    with open_store(tmp_path / "store") as store:
        store.upsert([doc("whole", "call train_test_split now"), doc("p", "train test split")])
        hits = store.search("train_test_splitt")
        assert hits.meant == {"splitt": "split"}
        assert [(hit.id, hit.related) for hit in hits] == [("whole", False), ("p", True)]


def test_plain_words_with_hyphens_are_no_identifiers():
    names = "anti-viral and/or foo.bar C++ textHasher _x"
    query = read_query(names)
    assert query.names == ("anti-viral", "and/or", "foo.bar", "C++", "textHasher", "_x")
    assert query.identifiers() == ["foo.bar", "C++", "textHasher", "_x"]
    english = language("english")
    assert [read_query(one).only_name(english) for one in names.split()] == [
        *("", "", "foo.bar", "C++", "textHasher", "_x")
    ]
    assert read_query('"foo.bar"').only_name(english) == ""


def test_names_end_where_text_begins():
    assert find_names("(`a_b`), c.d. E::f!") == ["a_b", "c.d", "E::f"]
    assert find_names("plain words, 3 of them - and dashes") == []


def test_documents_with_the_words_are_not_called_related_however_weak(tmp_path):
    with open_store(tmp_path / "store") as store:
        store.upsert([doc("strong", "mars rover mars rover"), doc("none", "the earth")])
        store.upsert([Document("weak", FILLER * 3 + " A rover.")])
        hits = store.search("mars rover")
        assert [(hit.id, hit.related) for hit in hits] == [("strong", False), ("weak", False)]
        assert hits[1].score < hits[0].score / 2
        assert "Related" not in repr(hits)


def test_a_word_inside_another_one_is_a_word_that_the_document_has(tmp_path):
    with open_store(tmp_path / "store") as store:
        store.upsert([doc("inside", "call setTimeout(f) first"), doc("none", "the earth")])
        (hit,) = store.search("timeout")
        assert (hit.id, hit.related, hit.words) == ("inside", False, ("settimeout",))
        (hit,) = store.search("E_TIMEOUT")
        assert hit.related and "With parts of it only:" in repr(store.search("E_TIMEOUT"))


def test_what_is_said_of_a_missing_name_is_said_once(tmp_path):
    with open_store(tmp_path / "store") as store:
        store.upsert([doc("a", "the best estimator"), doc("b", "a grid search")])
        hits = store.search("GridSearchCV")
        assert hits.warning == "No document has 'GridSearchCV'. These have parts of it."


# -- what a query reads of long documents ----------------------------------------------------------


@pytest.fixture
def sizes_read(monkeypatch):
    """Note how many characters are looked at for words."""
    from vdsh.store import searching

    sizes = []
    read = searching.words_in

    def note(texts, words, language):
        sizes.append(sum(map(len, texts)))
        return read(texts, words, language)

    monkeypatch.setattr(searching, "words_in", note)
    return sizes


@pytest.mark.parametrize("query", ["observatory walrus", "walrus", "blue_walrus", "no such zork"])
def test_a_query_looks_at_passages_and_not_at_the_whole_text_of_its_hits(
    tmp_path, sizes_read, query
):
    paragraph = "A walrus lives near the observatory, the blue_walrus even in it. "
    for size in (200, 400):
        with open_store(tmp_path / f"store{size}") as store:
            text = "\n\n".join([FILLER, paragraph] * size)
            store.upsert([doc(f"d{i}", text) for i in range(10)])
            assert len(text) > 100_000
            assert len(store.search(query)) == 10 * (query != "no such zork")
    assert max(sizes_read) < 10 * 4_000


def test_the_passage_has_the_rarest_word(tmp_path):
    common = "The moon rises over the orbit of the rocket. "
    with open_store(tmp_path / "store") as store:
        store.upsert([doc(f"c{i}", f"{common} {i}") for i in range(20)])
        text = f"{common * 5} {FILLER * 2} A narwhal swam by. {FILLER}"
        store.upsert([doc("rare", text)])
        hit = store.search("moon orbit rocket narwhal")[0]
        assert hit.id == "rare" and hit.words[0] == "narwhal"
        for width in (50, 100, 240):
            assert "narwhal" in hit.passage(width)


def test_the_passage_has_the_phrase_also_in_a_short_text(tmp_path):
    words = "A planet near a red rover; the red rover of the planet, red. "
    with open_store(tmp_path / "store") as store:
        store.upsert([doc("a", f"{words * 3} {FILLER[:200]} The Red Planet. {FILLER[:200]}")])
        (hit,) = store.search('"red planet" rover')
        assert "Red Planet" in hit.passage() and "Red Planet" in hit.passage(80)


def test_a_title_is_where_a_word_is_too(tmp_path):
    with open_store(tmp_path / "store") as store:
        store.upsert([Document("guide/flashing.rst", "Put it on the chip.", None, {})])
        (hit,) = store.search("flashing")
        assert hit.words == ("flashing",) and not hit.related
