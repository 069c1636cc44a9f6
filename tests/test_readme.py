"""What the README and the docs show must run."""

import csv
import gzip
import random
import re
import shutil
import sys
from pathlib import Path

import pytest

from test_tutorial import free_port, printed_by, run, shell  # noqa: F401

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_life_of_a_model_runs_as_shown(docs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("vdsh-demo").mkdir()
    with gzip.open("vdsh-demo/documents.jsonl.gz", "wb") as file:
        file.write(docs.read_bytes())
    (code,) = [block for block in blocks(PAGES[0], "python") if "TextHasher" in block]
    code = code.replace("probability density of a distribution", "moon orbit and crew")
    exec(code, {})
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["space"] * 3


ABOUT = {
    "accounts": "cannot log in update password account locked browser session email reset code",
    "billing": "invoice payment card refund charged twice subscription price receipt tax bank",
}


@pytest.mark.slow
def test_the_commands_run_in_order_and_drift_raises_no_alarm(shell, tmp_path):  # noqa: F811  #31
    if not shutil.which("bash"):
        pytest.skip("the commands are for bash")
    rng = random.Random(0)
    for name, n_rows in (("tickets.csv", 600), ("newer.csv", 200)):
        with (tmp_path / name).open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["id", "subject", "body", "team"])
            for i in range(n_rows):
                team = rng.choice(list(ABOUT))
                words = rng.choices(ABOUT[team].split(), k=14)
                out.writerow([f"{name[0]}{i}", " ".join(words[:4]), " ".join(words[4:]), team])
    done = run(PAGES[0], tmp_path, shell, free_port())
    first = printed_by(done, "vdsh search").splitlines()
    assert len(first) == 5 and all("\taccounts\t" in hit for hit in first)
    drift = printed_by(done, "vdsh drift")
    assert "share of unknown words" in drift, "it compares something"
    assert "Drift in" not in drift


def test_the_text_page_shows_what_tokenize_gives():
    (code,) = blocks(ROOT / "docs" / "text.md", "python")
    *_, call, shown = code.strip().splitlines()
    scope = {}
    exec(code, scope)
    assert eval(call, scope) == eval(shown.removeprefix("# "))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_every_verb_is_in_the_readme_or_docs():
    sys.argv = ["vdsh"]
    from vdsh.cli import app

    text = "".join(page.read_text() for page in PAGES)
    for command in app.registered_commands:
        assert f"vdsh {'research ' * command.hidden}{command.name}" in text


def test_tables_are_those_of_the_committed_results():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import tables
    finally:
        sys.path.pop(0)
    for page, content in tables.pages().items():
        assert page.read_text() == content, "run benchmarks/tables.py"
