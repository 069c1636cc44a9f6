"""What is imported when: start-up stays light, and serving never needs torch."""

import subprocess
import sys

import pytest

from vdsh import Document, open_store


def modules_after(code: str) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(result.stdout.split())


def test_importing_vdsh_loads_nothing_heavy():
    loaded = modules_after("import vdsh")
    assert not loaded & {"torch", "numba", "sklearn", "scipy", "numpy", "pandas"}


def test_a_client_loads_numpy_and_nothing_heavier():
    loaded = modules_after("from vdsh import Client\nClient('http://127.0.0.1:8000')")
    assert not loaded & {"sklearn", "scipy", "pandas", "torch", "numba", "fastapi", "sqlite3"}


def test_help_loads_nothing_heavy():
    loaded = modules_after(
        "from vdsh.cli import app\ntry:\n app(['--help'])\nexcept SystemExit:\n pass"
    )
    assert not loaded & {"torch", "numba", "sklearn", "scipy", "numpy"}


def test_encoding_and_searching_never_load_torch(model_folder):
    loaded = modules_after(
        "from vdsh import TextHasher, HammingIndex\n"
        f"codes = TextHasher.load({str(model_folder)!r}).encode(['orbit moon', 'goal match'])\n"
        "HammingIndex(codes).search(codes, k=1)"
    )
    assert "torch" not in loaded


ASKED = [
    "search {} orbit",
    "search {} orbit --radius 2",
    "search {} orbit --rank expected",
    "info {}",
]


def test_asking_a_store_loads_numpy_and_nothing_heavier(fitted, tmp_path):  # #17
    with open_store(tmp_path / "store", fitted) as store:
        store.upsert([Document("a", "orbit moon"), Document("b", "goal match")])
    asked = [words.format(tmp_path / "store").split() for words in ASKED]
    loaded = modules_after(  # in one process: what one of them loads is seen at the end
        f"from vdsh.cli import app\nfor words in {asked}:\n"
        " try:\n  app(words)\n except SystemExit as end:\n  assert not end.code, words"
    )
    assert "sqlite3" in loaded
    assert not loaded & {"sklearn", "scipy", "pandas", "torch", "numba"}


def test_training_does_not_load_the_compiler_of_torch(docs, tmp_path):
    arguments = ["fit", str(docs), "--out", str(tmp_path / "m"), "--bits", "8", "--epochs", "1"]
    loaded = modules_after(
        f"from vdsh.cli import app\ntry:\n app({arguments})\nexcept SystemExit:\n pass"
    )
    assert "torch" in loaded
    assert not loaded & {"torch._dynamo", "sklearn", "scipy.stats"}


@pytest.mark.parametrize(
    ("named", "said", "code"),
    [
        (["--model", "vdsh"], "Run: pip install 'vdsh[train]'", 1),
        (
            [],
            "because torch is not installed; with it (pip install 'vdsh[train]')",
            0,
        ),
    ],
)
def test_training_on_a_base_install_says_what_to_install(named, said, code, docs, tmp_path):
    given = ["vdsh", "fit", str(docs), "--out", str(tmp_path / "model"), "--bits", "8", *named]
    script = (
        "import sys\n"
        "class Base:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('torch', 'sklearn', 'joblib'):\n"
        "            raise ModuleNotFoundError(f'No module named {name}', name=name)\n"
        "sys.meta_path.insert(0, Base())\n"
        "from vdsh.cli import main\n"
        f"sys.argv = {given!r}\n"
        "main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == code, result.stderr
    assert said in result.stderr
