"""Lines of progress where nobody looks: what takes long says so, and how far it is."""

import time

from rich.progress import TextColumn

from vdsh.progress import busy, progress_bar


def wait_for_lines(capfd, n):
    text, deadline = "", time.monotonic() + 20
    while text.count("\n") < n and time.monotonic() < deadline:
        time.sleep(0.01)
        text += capfd.readouterr().err
    return text


def test_a_long_step_says_that_it_goes_on(monkeypatch, capfd):
    monkeypatch.setattr("vdsh.progress.FIRST", 0.01)
    monkeypatch.setattr("vdsh.progress.SECONDS", 0.01)
    with progress_bar(TextColumn("{task.fields[count]} documents")) as bar:
        bar.add_task("adding", total=None, count=7)
        assert "adding 7 documents 0:00:0" in wait_for_lines(capfd, 2)
    with busy("checking"):
        assert wait_for_lines(capfd, 2).startswith("checking 0:00:0")
    capfd.readouterr()
    time.sleep(0.05)
    assert capfd.readouterr().err == ""  # and nothing more afterwards


def test_a_short_step_says_nothing(monkeypatch, capfd):
    monkeypatch.setattr("vdsh.progress.FIRST", 60)
    with busy("checking"):
        pass
    assert capfd.readouterr().err == ""
