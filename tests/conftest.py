"""A corpus whose right answer is known: two topics without a word in common."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vdsh import TextHasher

SPACE = "orbit rocket shuttle launch moon crew astronaut satellite".split()
SPORT = "goal match player season team coach referee stadium".split()


def toy_corpus(n_docs: int = 80, seed: int = 0) -> tuple[list[str], list[str]]:
    """Make texts of five words each, alternately about space and sport."""
    rng = np.random.RandomState(seed)
    labels = ["space", "sport"] * (n_docs // 2)
    words = {"space": SPACE, "sport": SPORT}
    return [" ".join(rng.choice(words[label], 5, replace=False)) for label in labels], labels


QUICK = {"epochs": 12, "hidden_size": 32, "batch_size": 16, "device": "cpu"}


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
def vdsh(tmp_path: Path):
    """Run the real command line in an empty folder."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "vdsh", *map(str, arguments)]
        options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 300} | options
        return subprocess.run(command, check=False, env=os.environ | {"COLUMNS": "100"}, **options)

    return run
