"""Ctrl-C at any moment of a command leaves at most a quiet line, and exit status 130.

The moments are chosen by what is imported, so that a slow machine tests the same as a fast one.
"""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.posix("a signal is sent as a terminal does")

# Read by Python before anything of ours: notes each module that begins to be imported, and presses
# Ctrl-C at one of them.
PRESS = """
import os, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name not in seen:
            seen.append(name)
            if name == os.environ.get("PRESS_AT"):
                os.kill(os.getpid(), 2)

seen = []
sys.meta_path.insert(0, Press())
if "NOTE_IN" in os.environ:
    import atexit
    atexit.register(lambda: open(os.environ["NOTE_IN"], "w").write("\\n".join(seen)))
"""
VERBS = {
    "search": ["search", "store", "moon"],
    "add": ["add", "new", "docs.jsonl", "--learn", "never"],
    "info": ["info", "store"],
    "help": ["--help"],
    "research": ["research", "datasets"],
}
SERVING = {
    "serve": ["serve", "store", "--port", "0", "--quiet"],
    "mcp": ["mcp", "store"],
}
N_MOMENTS = 6


@pytest.fixture(scope="module")
def press(tmp_path_factory):
    """Run a verb and press Ctrl-C when a module begins to be imported."""
    folder = tmp_path_factory.mktemp("pressed")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(PRESS)
    (folder / "docs.jsonl").write_text('{"id": "a", "text": "moon orbit"}\n')
    path = os.pathsep.join(filter(None, [str(folder / "site"), os.environ.get("PYTHONPATH")]))

    def run(words, module=None, **more):
        at = {} if module is None else {"PRESS_AT": module}
        return subprocess.run(
            [sys.executable, "-m", "vdsh", *words],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path} | at | more.pop("env", {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **more,
        )

    made = run(["add", "store", "docs.jsonl", "--learn", "never"])
    assert made.returncode == 0, made.stderr
    return run


def check_quiet(done, at):
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, at
    assert done.stderr in ("", "Interrupted.\n"), at
    # What a shell calls 130, either way.
    assert done.returncode in (130, -signal.SIGINT), at


@pytest.mark.parametrize("verb", VERBS)
def test_ctrl_c_is_quiet_whatever_is_being_imported(press, verb, tmp_path):
    note = tmp_path / "modules"
    done = press(VERBS[verb], env={"NOTE_IN": str(note)})
    assert done.returncode == 0, done.stderr
    names = note.read_text().split("\n")
    ours = names[names.index("vdsh.interrupts") :]
    assert "typing" in ours, "what is slow is imported when Ctrl-C is quiet already"
    step = max(1, len(ours) // N_MOMENTS)
    for name in ours[::step]:
        check_quiet(press(VERBS[verb], name), name)


@pytest.mark.parametrize(
    ("verb", "module"),
    [("serve", "vdsh.cli.serve"), ("serve", "fastapi"), ("serve", "uvicorn"), ("mcp", "mcp")],
)
def test_what_serves_is_quiet_while_it_starts(press, verb, module):
    check_quiet(press(SERVING[verb], module), module)


def test_a_command_whose_interrupts_are_ignored_goes_on(press):
    """As one that a script starts in the background."""

    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    done = press(VERBS["search"], "vdsh.cli", preexec_fn=ignore)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\ta\t" in done.stdout
