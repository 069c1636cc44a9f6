"""The order of the house: a room imports rooms above it in this list, never those below.

It is the list of the design, with the rooms that were added later.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

import vdsh

LAYERS = """
errors          the exception tree
interrupts      Ctrl-C while a process starts
estimator       what scikit-learn asks of what learns
cancel          work that stops when nobody waits for it any more
files           files and folders that are whole or absent
embed           vectors of texts by models that people have
documents       files to documents
jit             one way to compile and spread kernels
jit_kernels     operations that numba has no names for
text            texts to counts
words           which documents have which words
codes           bits, packed codes, thresholds
labels          labels as users give them, to one matrix
persistence     model folders
model           a trained model: codes, posteriors and words without what trained it
metrics         codes against labels
hashers         counts to bits
progress        bars
pipeline        texts to codes
explain         looking inside a model
search          exact Hamming search
retrieval       from a query to rows of documents, best first
store           documents and codes together
client          a store on another machine
export          codes for other programs
evaluation      a model on held-out texts, a store on queries with known answers
corpus_map      the map of a store
scale           many machines
fitting         learning a model, and measuring it
adding          files into a store, as they change
server          HTTP and the page
paper           corpora, protocol, tables and figures: for researchers
datasets        another name of paper.datasets, for scripts outside
cli             a file a verb or a few
"""
ROOMS = [line.split()[0] for line in LAYERS.strip().splitlines()]
SOURCE = Path(vdsh.__file__).parent
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.name != "__main__.py"]
VDSH = (
    "batches",
    "epochs",
    "linear_start",
    "network",
    "objective",
    "training",
    "updates",
    "validation",
)
WITH_TORCH = {f"hashers/vdsh/{name}.py" for name in VDSH}
WITH_TORCH |= {"hashers/baselines/rbm_training.py"}
WITH_TORCH |= {f"search/gpu/{name}.py" for name in ("kernels", "rows", "scan")}
WITH_TORCH |= {"paper/provenance.py"}  # the GPU's name


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path):
    """List every module that a file imports, also inside functions and for types only."""
    return list(_imports(path))


def _imports(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "vdsh":
            yield from (vdsh._HOMES.get(alias.name, f"vdsh.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name their module in full"
            yield node.module


def test_every_room_has_its_place():
    assert {room_of(path) for path in FILES} - {"__init__"} <= set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_no_import_points_down(room):
    above = set(ROOMS[: ROOMS.index(room) + 1]) | {"__version__"}
    for path in FILES:
        if room_of(path) == room:
            used = {name.split(".")[1] for name in imports(path) if name.startswith("vdsh.")}
            assert used <= above, f"{path.relative_to(SOURCE)} imports {used - above}"


RESEARCH = {"datasets.py", "cli/evaluate.py", "cli/reproduce.py", "cli/research.py"}


def test_only_research_verbs_and_the_name_for_scripts_import_the_researchers_wing():
    users = set()
    for path in FILES:
        if room_of(path) == "paper":
            continue
        # Names of modules in strings count too: they could be imported by hand.
        strings = [node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)]
        names = [*imports(path), *(text for text in strings if isinstance(text, str))]
        if any(is_research(name) for name in names):
            users.add(str(path.relative_to(SOURCE)))
    assert users == RESEARCH


def is_research(name):
    rooms = name.split(".")[:2]
    return rooms in (["vdsh", "paper"], ["vdsh", "datasets"]) and " " not in name


def test_no_files_of_the_store_import_each_other_in_a_circle():  # #32
    """Also inside functions and for types only."""
    files = {path: name_of(path) for path in FILES if room_of(path) == "store"}
    left = {name: own_imports(path) & set(files.values()) for path, name in files.items()}
    while free := {name for name, used in left.items() if not used}:
        left = {name: used - free for name, used in left.items() if name not in free}
    assert not left


def name_of(path):
    return ".".join(("vdsh", *path.relative_to(SOURCE).with_suffix("").parts))


def own_imports(path):
    """List the modules that a file imports, `from vdsh.store import reindex` included."""
    froms = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    return names | {node.module for node in froms}


def test_only_the_files_that_train_import_torch():
    users = {
        str(path.relative_to(SOURCE))
        for path in FILES
        if any(name.partition(".")[0] == "torch" for name in imports(path))
    }
    assert {user for user in users if not user.startswith("scale/")} == WITH_TORCH


def test_nobody_reaches_inside_an_estimator():  # #17
    """What serves asks the `Model`; only what learns knows vectoriser and hasher."""
    own = {"pipeline.py"}
    reaching = {
        str(path.relative_to(SOURCE))
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ("hasher_", "vectorizer_")
    }
    assert reaching == own


SERVING = (
    "model",
    "search",
    "store",
    "client",
    "explain",
    "export",
    "server",
    "corpus_map",
    "persistence",
)


@pytest.mark.parametrize("room", SERVING)
def test_rooms_that_serve_know_nothing_of_learning(room):  # #17
    for path in FILES:
        if room_of(path) == room:
            used = {name for name in imports(path) if not _for_types_only(path, name)}
            assert not {name for name in used if name.split(".")[0] == "sklearn"}, path
            assert not {name for name in used if name.startswith(("vdsh.hashers", "vdsh.pipeline"))}


def _for_types_only(path, module):
    """Say whether a module is imported for annotations alone."""
    blocks = [
        n for n in tree(path).body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)
    ]
    return any(
        isinstance(node, ast.ImportFrom) and node.module == module
        for block in blocks
        for node in block.body
    )
