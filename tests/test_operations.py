"""The life of a store as docs/operations.md tells it, command after command."""

import json
import shlex

from conftest import toy_corpus
from test_tutorial import DOCS, commands

PAGE = DOCS / "operations.md"


def test_every_command_runs_in_order(vdsh, tmp_path):
    texts, labels = toy_corpus(200)
    rows = [
        {"id": f"d{i}", "text": text, "labels": [label]}
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    for name, some in {"news": rows[:150], "more": rows[100:]}.items():
        lines = "".join(json.dumps(row) + "\n" for row in some)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    story = PAGE.read_text().partition("## What it costs")[0]
    (tmp_path / "story.md").write_text(story)
    bits = []
    for command in commands(tmp_path / "story.md"):
        program, *words = shlex.split(command)
        done = vdsh(*words)
        assert (program, done.returncode) == ("vdsh", 0), f"{command}: {done.stderr}"
        if words[0] == "reindex":
            bits.append(json.loads(vdsh("info", "news-store", "--json").stdout)["bits"])
    found = json.loads(vdsh("info", "news-store", "--json").stdout)
    assert (found["bits"], found["documents"]) == (64, 198)  # two of them were deleted
    assert bits == [32, 16, 32, 64]
