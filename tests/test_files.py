import os
import stat

import numpy as np
import pytest

from vdsh.errors import OutputExistsError, WriteError
from vdsh.files import check_new, new_file, new_files, new_folder
from vdsh.search import HammingIndex


@pytest.fixture(params=[0o022, 0o027, 0o077, 0o002])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_every_file_of_a_model_follows_the_umask(fitted, umask, tmp_path):  # #16 A11
    fitted.save(tmp_path / "model")
    assert mode(tmp_path / "model") == 0o777 & ~umask
    for file in (tmp_path / "model").iterdir():
        assert mode(file) == 0o666 & ~umask, file.name


def test_an_index_file_follows_the_umask(umask, tmp_path):
    HammingIndex(np.zeros((3, 4), np.uint8)).save(tmp_path / "index")
    assert mode(tmp_path / "index") == 0o666 & ~umask


def test_files_appear_together_or_not_at_all(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    two.write_text("old")
    with pytest.raises(WriteError, match=r"Could not write '.*one': .* Nothing was changed\."):
        with new_files(one, two) as (first, second):
            first.write_text("new")
            second.write_text("new")
            raise OSError(28, "No space left on device")
    assert two.read_text() == "old"
    assert os.listdir(tmp_path) == ["two"]
    with new_files(one, two) as drafts:
        for draft in drafts:
            draft.write_text("new")
    assert one.read_text() == two.read_text() == "new"


def test_any_exception_leaves_what_was_there(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()
    for new in (new_folder, new_file):
        with pytest.raises(KeyboardInterrupt), new(path):
            raise KeyboardInterrupt
    assert [file.name for file in tmp_path.rglob("*")] == ["folder", "old"]


def test_what_is_renamed_is_on_the_disk_before(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("os.fsync", lambda number: synced.append(os.fstat(number).st_ino))
    with new_folder(tmp_path / "folder") as draft:
        (draft / "a").write_text("a")
        (draft / "b").write_text("b")
    assert set(synced) >= {file.stat().st_ino for file in (tmp_path / "folder").iterdir()}


def test_a_long_name_has_a_draft_too(tmp_path):
    with new_file(tmp_path / ("é" * 120)) as draft:
        draft.touch()
    assert [len(name) for name in os.listdir(tmp_path)] == [120]


def test_a_file_that_is_there_is_replaced_by_force_only(tmp_path):
    (tmp_path / "there").touch()
    with pytest.raises(OutputExistsError, match="Choose another file or use --force"):
        check_new(tmp_path / "there")
    check_new(tmp_path / "there", force=True)
    check_new(tmp_path / "absent")


def test_what_is_no_file_is_never_replaced(tmp_path):  # #31 B7
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(os.devnull)
    for name in ("pipe", "link"):
        for make in (new_file, new_folder):
            with pytest.raises(WriteError, match="never replaced"), make(tmp_path / name):
                raise AssertionError
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
