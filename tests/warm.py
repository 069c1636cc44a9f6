"""`vdsh fit` and `vdsh evaluate` that start warm: torch and scikit-learn are imported once.

    python tests/warm.py serve SOCKET        # imports, then forks for each command
    python tests/warm.py ask SOCKET WORDS    # runs `vdsh WORDS`, as a process of its own

Imports take five seconds of `vdsh fit`, and pages of the documentation call it again and again.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from select import select


@contextmanager
def warm_vdsh(folder):
    """Give the beginning of a command that runs `vdsh` warm, for a shell."""
    path = str(folder / "warm")
    process = subprocess.Popen(
        [sys.executable, __file__, "serve", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.read(5) == b"ready"
        yield f"{sys.executable} -I -S {__file__} ask {path}"
    finally:
        process.communicate(timeout=60)  # it ends when its standard input does


def serve(path):
    """Wait for commands; a fork that runs one returns from here with its words."""
    import sklearn.metrics  # noqa: F401

    import vdsh.cli.evaluate
    import vdsh.cli.fit
    import vdsh.evaluation
    import vdsh.hashers.vdsh.training
    import vdsh.pipeline  # noqa: F401

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    os.write(1, b"ready")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks here
    while listener in select([listener, 0], [], [])[0]:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            return keep(connection)
        connection.close()
    raise SystemExit


def keep(connection):
    """Fork once more, and tell how that ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if not child:
        return become(connection)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def become(connection):
    """Take the files, folder and variables of the one who asks; return the words."""
    message, files, _, _ = socket.recv_fds(connection, 2**20, 3)
    connection.close()
    for i, file in enumerate(files):
        os.dup2(file, i)
        os.close(file)
    words, folder, variables = json.loads(message)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    return words


def ask(path, *words):
    """Run a command and end as it does."""
    message = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [message], [0, 1, 2])
        sys.exit((connection.recv(1) or b"\1")[0])


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        ask(*sys.argv[2:])
    sys.argv = ["vdsh", *serve(sys.argv[2])]
    from vdsh.cli import main

    main()
