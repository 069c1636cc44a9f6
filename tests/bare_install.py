"""What a base install must do with a saved model, without torch or any other extra.

    python tests/bare_install.py train FOLDER    # where everything is installed
    python tests/bare_install.py use FOLDER      # where only the base is

`.ci/smoke` does both, the second in a fresh environment; the tests hide the extras instead.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

EXTRAS = """torch pyarrow fastapi uvicorn httptools uvloop prometheus_client fastapi_offline mcp
    matplotlib openTSNE pymilvus milvus_lite psycopg faiss ray pandas model2vec
    sentence_transformers pypdf sklearn joblib""".split()
SPACE = "rocket shuttle launch moon crew astronaut satellite telescope".split()
SPORT = "goal match player season team coach referee stadium".split()
LABELS = ("space", "sport")


def texts() -> list[str]:
    """Make forty texts of four words, alternately about space and sport."""
    return [" ".join(words[(i + j) % 8] for j in range(4)) for i in range(20)
            for words in (SPACE, SPORT)]  # fmt: skip


def train(folder: Path) -> None:
    """Save a small model."""
    from vdsh import TextHasher

    quick = {"epochs": 20, "hidden_size": 32, "batch_size": 8, "device": "cpu"}
    hasher = TextHasher("vdsh-s", 16, random_state=0, **quick)
    hasher.fit(texts(), list(LABELS) * 20, progress=False).save(folder / "model")


def use(folder: Path) -> None:
    """Encode and search with it; ask for what is not installed and read the answer."""
    installed = [name for name in EXTRAS if is_there(name)]
    assert not installed, f"not a base install: {installed}"
    from vdsh import Client, Document, HammingIndex, TextHasher, open_store

    hasher = TextHasher.load(folder / "model")
    codes = hasher.encode(texts())
    ids, _ = HammingIndex(codes).search(hasher.encode(["moon crew", "goal match"]), k=5)
    assert [row.tolist() for row in ids % 2] == [[0] * 5, [1] * 5]
    with open_store(folder / "store", hasher) as store:
        rows = enumerate(texts())
        store.upsert(Document(str(i), text, (LABELS[i % 2],)) for i, text in rows)
        assert {hit.labels for hit in store.search("moon crew", k=5)} == {("space",)}
    assert "cannot be reached" in repr(Client("http://127.0.0.1:9", wait=0))
    assert ask("search", folder / "store", "goal match", "-k", "3").count("sport") == 3
    assert "confidence" in ask("explain", folder / "model", "moon crew")
    (folder / "texts.txt").write_text("\n".join(texts()))
    assert len(ask("encode", folder / "model", folder / "texts.txt").splitlines()) == 40
    ask("fit", folder / "texts.txt", "--bits", "8", "--out", folder / "linear")  # without torch
    ask("add", folder / "added", folder / "texts.txt")
    assert ask("search", folder / "added", "moon crew", "-k", "1").strip()
    sth = ("fit", folder / "texts.txt", "--model", "sth", "--bits", "8", "--out", "never")
    assert "STH needs scikit-learn" in ask(*sth, fails=True)
    for extra, arguments in {
        "train": ("fit", folder / "texts.txt", "--model", "vdsh", "--bits", "8", "--out", "never"),
        "server": ("serve", folder / "store"),
        "mcp": ("mcp", folder / "store"),
        "export": ("export", folder / "store", "--to", "faiss", "--out", folder / "f.faiss"),
    }.items():
        assert f"pip install 'vdsh[{extra}]'" in ask(*arguments, fails=True)
    print("The base install encodes, searches and explains, and names the extras it lacks.")


def is_there(name: str) -> bool:
    """Say whether a package can be imported."""
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


def ask(*words: object, fails: bool = False) -> str:
    """Run the command line."""
    command = [sys.executable, "-m", "vdsh", *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode != 0) == fails, result.stderr
    return result.stderr if fails else result.stdout


if __name__ == "__main__":
    {"train": train, "use": use}[sys.argv[1]](Path(sys.argv[2]))
