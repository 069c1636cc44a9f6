"""`vdsh` for shell scripts: every command a process of its own, that starts in a moment.

A server imports the packages of others once and forks for each command. What is ours is imported
by each command anew, and standard input, output and exit code are those of the command.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import contextmanager, suppress
from importlib import import_module

OTHERS = ("fastapi", "numba", "sklearn.svm", "torch._dynamo", "typer")


@contextmanager
def quick_vdsh(folder):
    """Leave an executable `vdsh` in a folder."""
    place = os.path.join(folder, "socket")
    command = [sys.executable, __file__, place]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout.readline() == b"ready\n"
            script = os.path.join(folder, "vdsh")
            with open(script, "w") as file:
                file.write(f'#!/bin/sh\nexec {sys.executable} -S {__file__} {place} "$@"\n')
            os.chmod(script, 0o755)
            yield
        finally:
            server.kill()


def ask(place, words):
    """Have a command run with the files of this process; return its exit code."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        message = json.dumps([os.getcwd(), words]).encode()
        socket.send_fds(connection, [message], [0, 1, 2])
        answers = connection.makefile()
        process = int(answers.readline())
        signal.signal(signal.SIGTERM, lambda *_: os.kill(process, signal.SIGTERM))
        return int(answers.readline())


def wait_for_a_command(place):
    """Fork for each command; return its words, in the new process only."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen()
        server.settimeout(5)
        os.write(1, b"ready\n")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        tests = os.getppid()
        while os.getppid() == tests:  # they may have been killed
            with suppress(TimeoutError):
                connection, _ = server.accept()
                if not os.fork():
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    return start(connection)
                connection.close()
    sys.exit()


def start(connection):
    """Fork again: one process waits and tells the exit code, the other returns its words."""
    message, files, *_ = socket.recv_fds(connection, 2**16, 3)
    process = os.fork()
    if process:
        connection.sendall(b"%d\n" % process)
        _, status = os.waitpid(process, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    connection.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    folder, words = json.loads(message)
    os.chdir(folder)
    return words


def run(words):
    """Run a command; end without taking apart what was imported, which takes a second or three."""
    sys.argv, code = ["vdsh", *words], 1
    try:
        runpy.run_module("vdsh", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    if os.path.exists(sys.argv[1]):
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
    for name in OTHERS:
        import_module(name)
    sys.modules["numba"].njit(lambda: 0)()  # the first function takes long, whatever it does
    gc.freeze()  # what is collected is copied
    run(wait_for_a_command(sys.argv[1]))
