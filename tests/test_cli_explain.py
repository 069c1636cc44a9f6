import json
import subprocess
import sys

import pytest

from conftest import toy_corpus
from vdsh import TextHasher
from vdsh.explain import as_fields, explain_bits, explain_pair, explain_text, sample

TEXT, OTHER = "the crew left the moon", "a crew in orbit"


@pytest.fixture(scope="module")
def baseline_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "itq-model"
    TextHasher("itq", n_bits=16, random_state=0).fit(toy_corpus()[0]).save(path)
    return path


def test_explain_lists_the_words_of_every_bit(vdsh, model_folder, fitted):
    result = vdsh("explain", model_folder, "--words", 4)
    assert result.returncode == 0, result.stderr
    rows = result.stdout.splitlines()[1:33]
    bits = explain_bits(fitted, n_words=4)
    assert [row[19:].split() for row in rows[::2]] == [[w.word for w in b.ones] for b in bits]
    assert [row[19:].split() for row in rows[1::2]] == [[w.word for w in b.zeros] for b in bits]
    assert "bits" in result.stdout.splitlines()[-1]


def test_explain_prints_json_lines(vdsh, model_folder, fitted):
    bits = vdsh("explain", model_folder, "--json").stdout.splitlines()
    assert [json.loads(line) for line in bits] == as_fields(explain_bits(fitted))
    text = json.loads(vdsh("explain", model_folder, TEXT, "--json").stdout)
    assert text == as_fields(explain_text(fitted, TEXT))
    pair = json.loads(vdsh("explain", model_folder, TEXT, "--other", OTHER, "--json").stdout)
    assert pair == as_fields(explain_pair(fitted, TEXT, OTHER))
    (bit,) = vdsh("explain", model_folder, "--bit", 3, "--json").stdout.splitlines()
    assert json.loads(bit) == json.loads(bits[3])


def test_explain_shows_a_text_bit_by_bit(vdsh, model_folder, fitted):
    lines = vdsh("explain", model_folder, TEXT).stdout.splitlines()
    found = explain_text(fitted, TEXT)
    assert lines[0].split() == ["code", found.code]
    assert f"{found.confidence:.2f}" in lines[1]
    assert [int(line.split()[1]) for line in lines[4:]] == [one.value for one in found.bits]
    only = vdsh("explain", model_folder, TEXT, "--bit", 2).stdout.splitlines()
    assert only[4:] == lines[6:7]


def test_explain_shows_one_bit_with_both_views(vdsh, model_folder, baseline_folder):
    shown = vdsh("explain", model_folder, "--bit", 0).stdout
    assert "encoder" in shown
    assert "decoder" in shown
    assert "decoder" not in vdsh("explain", baseline_folder, "--bit", 0).stdout


def test_explain_shows_shared_words_and_what_differs(vdsh, model_folder, fitted):
    shown = vdsh("explain", model_folder, TEXT, "--other", OTHER).stdout
    agreement = explain_pair(fitted, TEXT, OTHER).agreement
    assert f"distance  {len(agreement.differ)} of 16 bits" in shown
    assert any(line.startswith("crew ") for line in shown.splitlines())
    assert shown.count("differs:") == len(agreement.differ)
    none = vdsh("explain", model_folder, TEXT, "--other", "goal match").stdout
    assert "No word of both texts" in none
    same = vdsh("explain", model_folder, TEXT, "--other", TEXT).stdout
    assert "differ    none" in same


def test_explain_measures_health_on_documents(vdsh, model_folder, docs):
    shown = vdsh("explain", model_folder, "--health", docs).stdout
    assert "The most alike are bits" in shown
    bit = json.loads(vdsh("explain", model_folder, "--health", docs, "--bit", 1, "--json").stdout)
    assert -1 <= bit["correlation"] <= 1
    assert bit["correlated"] != 1
    table = vdsh("explain", model_folder, "--health", docs, "--bit", 1).stdout
    assert "correlation" in table


def test_sample_prints_draws(vdsh, model_folder, fitted):
    result = vdsh("sample", model_folder, "--text", "moon", "-k", 2, "--length", 7, "--words", 3)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 8
    first = sample(fitted, 2, text="moon", length=7, n_words=3)[0]
    assert lines[0] == f"draw 1, code {first.code}"
    assert lines[1].split()[2:] == [word.word for word in first.words]
    assert lines[3].split()[2:] == first.bag


def test_sample_prints_json_and_takes_codes_and_texts(vdsh, model_folder, fitted):
    line = vdsh("sample", model_folder, "--code", "00ff", "-k", 1, "--json", "--seed", 5).stdout
    assert json.loads(line) == as_fields(sample(fitted, 1, code="00ff", random_state=5)[0])
    line = vdsh("sample", model_folder, "--text", TEXT, "-k", 1, "--json").stdout
    assert json.loads(line) == as_fields(sample(fitted, 1, text=TEXT)[0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bit", 99], "There is no bit 99: the bits of this model are 0 to 15."),
        ([""], "The text is empty"),
        (["zyx"], "no word that the model knows"),
        (["--other", TEXT], "Give the first one"),
        ([TEXT, "--other", TEXT, "--bit", 1], "Leave --other out"),
        ([TEXT, "--health", "docs.jsonl"], "Leave the text out"),
        (["--words", 0], "at least 1"),
        (["--health", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_explain_refuses_with_one_line(vdsh, model_folder, arguments, said):
    result = vdsh("explain", model_folder, *arguments)
    assert result.returncode == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--code", "abc"], "Not a hexadecimal code"),
        (["--code", "abcdef"], "codes of 16 bits"),
        (["--text", ""], "is empty"),
        (["-k", 0], "at least 1"),
        (["--seed", -1], "seed"),
    ],
)
def test_sample_refuses_with_one_line(vdsh, model_folder, arguments, said):
    result = vdsh("sample", model_folder, *arguments)
    assert result.returncode == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_model_that_cannot_produce_words_says_so(vdsh, baseline_folder):
    result = vdsh("sample", baseline_folder)
    assert result.returncode == 1
    assert "has no decoder" in result.stderr
    shown = vdsh("explain", baseline_folder, TEXT)
    assert shown.returncode == 0
    assert "confidence" not in shown.stdout


def test_explaining_and_sampling_never_load_torch(model_folder):
    code = (
        "import sys\n"
        "from vdsh import TextHasher\n"
        "from vdsh.explain import explain_bits, explain_text, sample\n"
        f"hasher = TextHasher.load({str(model_folder)!r})\n"
        "explain_bits(hasher), explain_text(hasher, 'moon'), sample(hasher, text='moon')\n"
        "print('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stdout == "False\n", result.stderr
