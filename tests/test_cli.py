import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from vdsh import TextHasher
from vdsh.cli import GROUPS, RESEARCH, SUMMARIES, VERBS
from vdsh.codes import to_bit_strings, to_hex

QUICK = ("--bits", 8, "--epochs", 2, "--set", "hidden_size=8", "--device", "cpu")


def test_fit_and_encode(vdsh, docs, tmp_path):
    fit = vdsh("fit", docs, "--out", "m", "--model", "vdsh-s", *QUICK)
    assert fit.returncode == 0, fit.stderr
    assert "Learned 8-bit codes from 80 documents" in fit.stdout
    encode = vdsh("encode", "m", docs)
    lines = [line.split("\t") for line in encode.stdout.splitlines()]
    texts = [json.loads(line)["text"] for line in docs.read_text().splitlines()]
    codes = TextHasher.load(tmp_path / "m").encode(texts)
    assert lines == [[f"d{i}", code] for i, code in enumerate(to_hex(codes))]


def test_encode_writes_json_bits_and_files(vdsh, docs, model_folder, fitted, corpus, tmp_path):
    codes = fitted.encode(corpus[0])
    as_json = vdsh("encode", model_folder, docs, "--json").stdout.splitlines()
    assert json.loads(as_json[3]) == {"id": "d3", "code": to_hex(codes)[3]}
    bits = vdsh("encode", model_folder, docs, "--bits").stdout.splitlines()
    assert bits[3] == f"d3\t{to_bit_strings(codes)[3]}"
    vdsh("encode", model_folder, docs, "--out", "codes.tsv")
    assert len((tmp_path / "codes.tsv").read_text().splitlines()) == 80
    again = vdsh("encode", model_folder, docs, "--out", "codes.tsv")
    assert again.returncode == 1
    assert "exists" in again.stderr


def test_encode_reads_stdin_gz_and_csv(vdsh, docs, model_folder, tmp_path):
    expected = vdsh("encode", model_folder, docs).stdout
    assert vdsh("encode", model_folder, "-", input=docs.read_text()).stdout == expected
    with gzip.open(tmp_path / "docs.jsonl.gz", "wb") as file:
        file.write(docs.read_bytes())
    assert vdsh("encode", model_folder, "docs.jsonl.gz").stdout == expected
    rows = [json.loads(line) for line in docs.read_text().splitlines()]
    table = "\n".join(["name,body", *(f"{row['id']},{row['text']}" for row in rows)])
    (tmp_path / "docs.csv").write_text(table)
    options = ("--id-field", "name", "--text-field", "body")
    assert vdsh("encode", model_folder, "docs.csv", *options).stdout == expected


def test_the_same_seed_gives_the_same_model(vdsh, docs, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert vdsh("fit", docs, "--out", name, *QUICK, "--seed", seed).returncode == 0
    a, b, c = (vdsh("encode", name, docs).stdout for name in "abc")
    assert a == b != c


def test_fit_prints_json(vdsh, tmp_path, corpus):
    texts, labels = corpus
    rows = zip(texts * 2, labels * 2, strict=True)
    lines = (json.dumps({"text": text, "labels": label}) for text, label in rows)
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    result = vdsh("fit", "d.jsonl", "--out", "m", *QUICK, "--json", "--preset", "paper")
    facts = json.loads(result.stdout)
    assert (facts["documents"], facts["validation_documents"]) == (144, 16)
    assert facts["selected_on"] == "precision"
    assert json.loads((tmp_path / "m" / "manifest.json").read_text())["params"]["word_dropout"] == 0


BAD_FILES = {
    "empty.jsonl": b"",
    "broken.jsonl": b'{"text": "orbit"}\n{"text": \n',
    "no-text.jsonl": b'{"id": "a", "body": "orbit"}\n',
    "latin.jsonl": b'{"text": "caf\xe9"}\n',
    "few.jsonl": b'{"text": "orbit moon", "labels": "a"}\n' * 7,
    "one-label.jsonl": b'{"text": "orbit moon", "labels": "a"}\n' * 40,
    "no-labels.jsonl": b'{"text": "orbit moon"}\n' * 40,
    "topics.csv": b"text;topic;year\n" + b"orbit;space;1990\n" * 40,
    "stop-words.jsonl": b'{"text": "the of and"}\n' * 40,
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl"], "No file or folder 'missing.jsonl'"),
        (["empty.jsonl"], "'empty.jsonl' holds no documents"),
        (["broken.jsonl"], "'broken.jsonl', line 2: broken JSON"),
        (["no-text.jsonl"], "'no-text.jsonl', line 1: no field 'text'"),
        (["latin.jsonl"], "line 1: byte 0xe9 is not utf-8"),
        (["few.jsonl"], "8 bits need at least 8 documents to learn from. Got 7 documents."),
        (["one-label.jsonl", "--model", "vdsh-s"], "at least two different labels"),
        (["no-labels.jsonl", "--model", "vdsh-s"], "There is no other field: name the one"),
        (
            ["topics.csv", "--model", "vdsh-s"],
            "Other fields are 'topic', 'year': name the one that holds them with --labels-field",
        ),
        (["stop-words.jsonl"], "No word is left to count"),
        (["few.jsonl", "--bits", "20"], "n_bits must be a multiple of 8 from 8 to 1024. Got 20"),
        (["few.jsonl", "--model", "vdhs"], "Did you mean 'vdsh'?"),
        (["few.jsonl", "--set", "epoch=3"], "Did you mean 'epochs'?"),
        (["few.jsonl", "--set", "epochs"], "--set takes name=value"),
        (["few.jsonl", "--preset", "worst"], "--preset must be best or paper"),
        (["few.jsonl", "--device", "cuda:99"], "No GPU is usable here"),
    ],
)
def test_bad_input_to_fit_is_one_sentence_and_leaves_nothing(arguments, message, vdsh, tmp_path):
    for name, content in BAD_FILES.items():
        (tmp_path / name).write_bytes(content if name != "few.jsonl" or "--device" not in arguments
                                      else content * 4)  # fmt: skip
    before = sorted(os.listdir(tmp_path))
    options = QUICK if "--bits" not in arguments else QUICK[2:]
    if "--device" in arguments:
        options = QUICK[:-2]
    result = vdsh("fit", *arguments, "--out", "m", *options)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_a_log_gets_a_line_of_progress_now_and_then(vdsh, docs, model_folder, monkeypatch):
    options = ("fit", docs, "--out", "m", *QUICK, "--force")  # #16 D4
    monkeypatch.setattr("vdsh.progress.FIRST", 60)  # a moment, however busy the machine is
    assert vdsh(*options).stderr == ""  # nothing for what takes a moment
    monkeypatch.setattr("vdsh.progress.SECONDS", 0)
    lines = vdsh(*options).stderr.splitlines()
    assert lines[0].startswith("reading 80 documents 0:00:0")
    assert any(line.startswith("epoch 2/2 loss ") for line in lines)
    assert vdsh(*options, "--quiet").stderr == ""


def test_a_setting_can_be_none_as_python_writes_it(vdsh, docs, tmp_path):  # #16 D4
    result = vdsh("fit", docs, "--out", "m", "--model", "lsh", "--set", "stop_words=None")
    assert result.returncode == 0, result.stderr
    assert TextHasher.load(tmp_path / "m").vectorizer_.stop_words is None


def test_pages_of_html_are_warned_of_and_read_with_html(vdsh, docs, tmp_path):  # #16 D4
    rows = [json.loads(line) for line in docs.read_text().splitlines()]
    pages = [row | {"text": f"<p>{row['text'].replace(' ', '&nbsp;')}</p>"} for row in rows]
    (tmp_path / "pages.jsonl").write_text("\n".join(map(json.dumps, pages)))
    options = ("--model", "lsh", "--bits", 8)
    with pytest.warns(UserWarning, match="80 of 80 documents look like HTML.*--html"):
        vdsh("fit", "pages.jsonl", "--out", "tags", *options)
    assert vdsh("fit", "pages.jsonl", "--out", "m", "--html", *options).returncode == 0
    expected = vdsh("encode", "m", docs).stdout
    assert vdsh("encode", "m", "pages.jsonl", "--html").stdout == expected


@pytest.mark.parametrize("verb", ["fit", "encode", "index", "evaluate"])
def test_verbs_that_read_documents_share_their_options(verb, vdsh):
    text = vdsh(verb, "--help").stdout
    for name in ("format", "id-field", "drop-field", "delimiter", "html", "max-document-size"):
        assert f"--{name}" in text


@pytest.mark.parametrize("name", ["empty.jsonl", "broken.jsonl", "no-text.jsonl", "latin.jsonl"])
def test_bad_input_to_encode_leaves_no_file(name, vdsh, model_folder, tmp_path):
    (tmp_path / name).write_bytes(BAD_FILES[name])
    result = vdsh("encode", model_folder, name, "--out", "codes")
    assert result.returncode == 1
    assert result.stderr.startswith("Error: ")
    assert os.listdir(tmp_path) == [name]


def test_an_output_folder_that_exists_needs_force(vdsh, docs, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "notes.txt").write_text("mine")
    result = vdsh("fit", docs, "--out", "m", *QUICK)
    assert (result.returncode, "exists" in result.stderr) == (1, True)
    assert vdsh("fit", docs, "--out", "n", *QUICK).returncode == 0
    assert vdsh("fit", docs, "--out", "n", *QUICK).returncode == 1
    assert vdsh("fit", docs, "--out", "n", *QUICK, "--force").returncode == 0


def test_documents_without_known_words_are_counted(vdsh, model_folder, tmp_path):
    (tmp_path / "d.txt").write_text("orbit rocket\nthe of and\nxylophone\n")
    result = vdsh("encode", model_folder, "d.txt", timeout=100)
    assert result.returncode == 0
    assert result.stderr.startswith("Warning: 2 of 3 documents have no known word")
    assert len(result.stderr.splitlines()) == 1
    codes = [line.split("\t")[1] for line in result.stdout.splitlines()]
    assert codes[1] == codes[2] != codes[0]


def _small_files_only():
    """Let the kernel refuse files over 20 kB, as a full disk would."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.posix("limits the size of files")
@pytest.mark.slow
def test_a_full_disk_leaves_nothing_half_written(vdsh, docs, model_folder, tmp_path):
    big = tmp_path / "big.jsonl"
    big.write_bytes(docs.read_bytes() * 50)
    before = sorted(os.listdir(tmp_path))
    encode = vdsh("encode", model_folder, big, "--out", "codes", preexec_fn=_small_files_only)
    fit = vdsh("fit", docs, "--out", "m", *QUICK[:2], "--epochs", 1, preexec_fn=_small_files_only)
    for result in (encode, fit):
        assert result.returncode == 1, result.stderr
        assert "Error: Could not write" in result.stderr
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_standard_output_is_said(vdsh, docs, model_folder):
    with open("/dev/full", "w") as full:
        result = vdsh("encode", model_folder, docs, "-q", stdout=full, stderr=subprocess.PIPE,
                      capture_output=False)  # fmt: skip
    assert result.returncode == 1
    assert result.stderr == "Error: Could not write to standard output: No space left on device.\n"


def test_a_closed_pipe_is_no_error(docs, model_folder, tmp_path):
    big = tmp_path / "big.jsonl"
    big.write_bytes(docs.read_bytes() * 100)
    command = f"{sys.executable} -m vdsh encode {model_folder} {big} -q | head -n 1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    assert result.stdout.startswith("d0\t")


def _interrupt(docs, tmp_path, moment):
    """Start a long training, press Ctrl-C when `moment` is seen in its progress."""
    driver = (
        "import sys, vdsh.hashers.vdsh as v\n"
        "from vdsh.cli import main\n"
        "fit = v.VDSH._fit\n"
        "def told(self, train, validation, progress, *start):\n"
        "    fit(self, train, validation, lambda r: print('epoch', r.epoch, flush=True), *start)\n"
        "v.VDSH._fit = told\n"
        "main()\n"
    )
    arguments = ["fit", docs, "--out", "m", "--bits", "8", "--epochs", "100000", "--quiet"]
    # What a shell starts in the background ignores Ctrl-C, and its children inherit that (#16 D5).
    process = subprocess.Popen(
        [sys.executable, "-c", driver, *map(str, arguments)],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    if moment:
        assert any(moment in line for line in process.stdout)
    else:
        time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def test_ctrl_c_keeps_the_best_model_and_says_so(docs, tmp_path, corpus):
    code, errors = _interrupt(docs, tmp_path, "epoch 3")
    assert code == 130
    assert "Training stopped in epoch" in errors
    assert "kept the model of epoch" in errors
    assert TextHasher.load(tmp_path / "m").encode(corpus[0]).shape == (80, 1)


def test_ctrl_c_before_the_first_epoch_ends_writes_nothing(docs, tmp_path):
    code, errors = _interrupt(docs, tmp_path, "")
    assert code in (130, -signal.SIGINT)  # the latter while Python itself still starts
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("verb", ["fit", "encode", "demo"])
def test_every_verb_helps_with_an_example(verb, vdsh):
    for flag in ("-h", "--help"):
        result = vdsh(verb, flag)
        assert result.returncode == 0
        assert (
            f"Example: {'cat titles.jsonl | vdsh research' if verb == 'encode' else 'vdsh'} {verb}"
            in result.stdout
        )


def test_completion_is_installed_and_completes(tmp_path):  # #20
    program = tmp_path / "bin" / "vdsh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m vdsh "$@"\n')
    program.chmod(0o755)
    asked = """vdsh --install-completion && . ~/.bashrc
    COMP_WORDS=(vdsh rein) COMP_CWORD=1; _vdsh_completion vdsh; echo ${COMPREPLY[*]}"""
    paths = {"HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", asked],
        env=os.environ | paths, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("bash completion installed in"), done.stderr
    assert done.stdout.endswith("\nreindex\n"), done.stderr


def test_help_lists_at_most_20_verbs_the_daily_ones_first(vdsh):  # #32
    parts = re.split(r"^([\w ]+):\n", vdsh("--help").stdout, flags=re.MULTILINE)
    listed = {title: re.findall(r"^  (\w+) ", text, re.MULTILINE) for title, text in
              zip(parts[1::2], parts[2::2], strict=True)}  # fmt: skip
    assert list(listed) == ["Options", *GROUPS]
    assert listed["Daily"][:2] == ["add", "search"] and listed["Maintenance"][0] == "check"
    verbs = [verb for title in GROUPS for verb in listed[title]]
    assert len(verbs) <= 20 and set(verbs) == set(VERBS) - set(RESEARCH)
    inner = vdsh("research", "--help").stdout
    assert all(f"\n  {verb} " in inner for verb in RESEARCH)
    assert vdsh("research", "datasets", "--json").stdout == vdsh("datasets", "--json").stdout != ""


def test_help_cuts_no_summary_at_80_columns(vdsh):
    for verbs, words in ((set(VERBS) - set(RESEARCH), ()), (RESEARCH, ("research",))):
        lines = vdsh(*words, "--help", env=os.environ | {"COLUMNS": "80"}).stdout.splitlines()
        for verb in verbs:
            (line,) = [line for line in lines if re.match(f"  {verb}  ", line)]
            assert line.split(maxsplit=1)[1] == SUMMARIES[verb]
            assert len(line) <= 80
            assert SUMMARIES[verb].endswith(".") and not SUMMARIES[verb].endswith("..")


def test_a_search_imports_neither_pydantic_nor_readers_of_files(vdsh, docs, tmp_path):
    """Each takes longer to load than the search."""
    assert vdsh("add", "store", docs, "--learn", "never").returncode == 0
    code = "import sys; sys.argv = ['vdsh', 'search', 'store', 'moon orbit', '-k', '3']\n"
    code += "from vdsh.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == 3
    loaded = set(done.stderr.split())
    unwanted = {"pydantic", "rich", "numba", "scipy", "numpy.ma", "tarfile", "hashlib", "logging"}
    assert not loaded & unwanted
    assert "vdsh.documents.reader" not in loaded


@pytest.mark.parametrize("value", ["ten", "1.5", "", "0x10", "1e3"])
def test_an_option_that_is_no_whole_number_is_refused(vdsh, value):
    result = vdsh("search", "store", "moon", "-k", value)
    assert result.returncode in (1, 2) and "Traceback" not in result.stderr
    assert "-k" in result.stderr


def test_a_verb_of_the_research_group_is_imported_alone():  # #32
    code = "import sys; sys.argv = ['vdsh', 'research', 'datasets', '-h']\n"
    code += "from vdsh.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "print([m for m in sys.modules if m.startswith('vdsh.cli.')], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: vdsh research datasets" in done.stdout
    assert "vdsh.cli.evaluate" not in done.stderr and "vdsh.cli.research" in done.stderr


PRINTING = [verb for verb in VERBS if verb not in ("research", "serve", "mcp", "reindex")]


@pytest.mark.parametrize("verb", PRINTING)
def test_every_verb_that_prints_can_print_json(verb, vdsh):  # #32
    assert "--json" in vdsh(verb, "--help").stdout


def test_options_of_fit_are_in_groups(vdsh):  # #32
    help = vdsh("fit", "--help").stdout
    panels = ["Arguments", "Model", "What it learns from", "Vectors"]
    places = [help.index(f"\n{name}:\n") for name in (*panels, "Reading documents", "Options")]
    assert places == sorted(places)
    assert places[2] < help.index("--sample") < places[3] < help.index("--no-text") < places[4]
    assert help.count("--bits") == 2  # and in the example


def test_help_lists_the_verbs_and_wrong_usage_is_exit_2(vdsh):
    result = vdsh("--help")
    assert all(f"  {verb} " in result.stdout for verb in ("demo", "check", "fit"))
    assert vdsh("--version").stdout.startswith("vdsh 0.")
    assert vdsh("fit").returncode == 2
    assert vdsh("fly").returncode == 2
