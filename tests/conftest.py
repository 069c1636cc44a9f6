"""A corpus whose right answer is known: two topics without a word in common."""

import json
import os
import subprocess
import sys
import tempfile
import types
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from engines import (  # noqa: F401
    folder,
    lite_file,
    new_place,
    place,
    postgres_server,
    readable,
    store,
    years,
)
from vdsh import TextHasher
from vdsh import embed as embedding
from vdsh.cli import app
from vdsh.hashers import HASHERS

# Its threads would begin anew in each child, also in one that is about to become another program,
# where all files are closed: the child is aborted.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# Stores that have only a name lie here, unless a test says otherwise: never where the user's are.
os.environ["VDSH_HOME"] = tempfile.mkdtemp(prefix="vdsh-home-")

SPACE = "orbit rocket shuttle launch moon crew astronaut satellite".split()
SPORT = "goal match player season team coach referee stadium".split()


def toy_corpus(n_docs: int = 80, seed: int = 0) -> tuple[list[str], list[str]]:
    """Make texts of five words each, alternately about space and sport."""
    rng = np.random.RandomState(seed)
    labels = ["space", "sport"] * (n_docs // 2)
    words = {"space": SPACE, "sport": SPORT}
    return [" ".join(rng.choice(words[label], 5, replace=False)) for label in labels], labels


QUICK = {"epochs": 12, "hidden_size": 32, "batch_size": 16, "device": "cpu"}


# Files that take ten seconds or more by themselves, the longest first.
LONGEST = """ray tutorial page server_live store_crash store store_words hashers store_properties
    relevance store_engines reproduce examples fuzz server cli_store cli drift words
    imports mcp bounds search_properties store_local reindex datasets vdsh documents""".split()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this system does not have, and put the longest files first.

    Then come those with slow tests, then many, so that no worker ends alone.
    """
    here = {"linux": sys.platform == "linux", "posix": os.name == "posix"}
    for item, name in product(items, here):
        if not here[name] and (mark := item.get_closest_marker(name)):
            item.add_marker(pytest.mark.skip(reason=f"only {name}: {mark.args[0]}"))
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    every = Counter(item.path for item in items)
    turns = {f"test_{name}.py": turn for turn, name in enumerate(LONGEST)}

    def order(item: pytest.Item) -> tuple[int, int, int]:
        turn = turns.get(item.path.name, len(LONGEST))
        return (turn, -slow[item.path], -every[item.path])

    items.sort(key=order)


def quick(model: str, **settings: object) -> dict[str, object]:
    """Settings for a quick fit; those that a method does not have are left out."""
    known = HASHERS[model]().get_params()
    return {name: value for name, value in (QUICK | settings).items() if name in known}


@pytest.fixture
def corpus() -> tuple[list[str], list[str]]:
    return toy_corpus()


@pytest.fixture(scope="session")
def fitted() -> TextHasher:
    """A small trained model; tests must not change it."""
    return TextHasher("vdsh-s", n_bits=16, random_state=0, **QUICK).fit(*toy_corpus())


@pytest.fixture(scope="session")
def model_folder(fitted: TextHasher, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "toy-model"
    fitted.save(path)
    return path


@pytest.fixture
def docs(tmp_path: Path, corpus: tuple[list[str], list[str]]) -> Path:
    """The toy corpus as a JSONL file."""
    path = tmp_path / "docs.jsonl"
    rows = zip(*corpus, strict=True)
    lines = [json.dumps({"id": f"d{i}", "text": t, "labels": [y]}) for i, (t, y) in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def vdsh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run the command line in an empty folder: in this process, where starting one costs seconds.

    With options of `subprocess.run` other than `input` it is a process of its own.
    """

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        words = [str(argument) for argument in arguments]
        monkeypatch.setenv("VDSH_HOME", str(tmp_path))  # names are files in the empty folder
        if options.keys() - {"input"}:
            settings = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 300}
            command = [sys.executable, "-m", "vdsh", *words]
            return subprocess.run(command, check=False, **(settings | options))
        monkeypatch.chdir(tmp_path)
        result = CliRunner().invoke(app, words, input=options.get("input"))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return subprocess.CompletedProcess(words, result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A package whose vectors are counts of letters, and the texts that it was given."""
    asked = []

    class StaticModel:
        @classmethod
        def from_pretrained(cls, name):
            if name != "letters":
                raise OSError("no such model\nand more")
            return cls()

        def encode(self, texts):
            asked.append(len(texts))
            return [[text.count(letter) for letter in "abcdefghijklmnop"] for text in texts]

    module = types.ModuleType("model2vec")
    module.StaticModel = StaticModel
    monkeypatch.setitem(sys.modules, "model2vec", module)
    monkeypatch.setenv("VDSH_CACHE", str(tmp_path / "cache"))
    embedding._load.cache_clear()
    yield asked
    embedding._load.cache_clear()
