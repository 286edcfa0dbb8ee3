"""Writing in one step, and mending what a killed writer left."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from infocal import files
from infocal.errors import BusyFolderError, SettingsError, UnwritableError
from infocal.files import (
    atomic_folder,
    check_writable,
    clear_leftovers,
    left_over_from,
    one_at_a_time,
    recover,
    write_text,
    writing,
)
from infocal.storage import check_replaceable


@pytest.fixture(scope="module")
def dead():
    """The number of a process that lives no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_failed_write_changes_nothing(tmp_path):
    write_text(tmp_path / "a", "old")
    with pytest.raises(RuntimeError), writing(tmp_path / "a") as stream:
        stream.write(b"new")
        raise RuntimeError
    assert (tmp_path / "a").read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a"]


def test_what_cannot_be_written_is_named_as_the_user_named_it(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    for path, reason in (("file/a", "Not a directory"), ("folder", "it is a folder")):
        with pytest.raises(UnwritableError, match=f"^cannot write {tmp_path / path}: {reason}$"):
            check_writable(tmp_path / path)
    for path, reason in (("file/a", "Not a directory|File exists"), ("folder", "Is a directory")):
        with pytest.raises(OSError, match=f"^cannot write {tmp_path / path}: ({reason})$"):
            write_text(tmp_path / path, "new")
    check_writable(tmp_path / "new" / "deep" / "a")
    check_writable(tmp_path / "file")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"


def test_the_error_of_a_file_crosses_processes():
    error = pickle.loads(pickle.dumps(UnwritableError("a", "no room")))
    assert (str(error), error.exit_code) == ("cannot write a: no room", 7)


def test_a_failed_folder_changes_nothing(tmp_path):
    for text in ("old", "new"):
        try:
            with atomic_folder(tmp_path / "model") as folder:
                write_text(folder / "a", text)
                if text == "new":
                    raise RuntimeError
        except RuntimeError:
            pass
    assert (tmp_path / "model" / "a").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_only_what_dead_processes_left_is_left_over(dead):
    assert left_over_from(f".model.json.{dead}.partial") == "model.json"
    assert left_over_from(f".model.json.{os.getpid()}.partial") is None
    assert left_over_from("model.json") is None
    assert left_over_from(".hidden.partial") is None


def test_leftovers_of_a_kill_are_cleared_and_nothing_else(tmp_path, dead):
    for name in ("model.json", f".model.json.{dead}.partial", f".model.json.{os.getpid()}.partial", ".profile"):
        (tmp_path / name).touch()
    clear_leftovers(tmp_path)
    assert {item.name for item in tmp_path.iterdir()} == {
        "model.json",
        f".model.json.{os.getpid()}.partial",
        ".profile",
    }


def test_a_kill_between_the_two_renames_is_mended(tmp_path, dead):
    old = tmp_path / f".model.{dead}.old"
    old.mkdir()
    (old / "a").write_text("old")
    (tmp_path / f".model.{dead}.partial").mkdir()
    recover(tmp_path / "model")
    assert [item.name for item in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "a").read_text() == "old"


def test_a_folder_of_the_users_own_is_not_replaced(tmp_path, dead):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(SettingsError, match=r"not a model's, e\.g\. 'README\.md'"):
        check_replaceable(tmp_path)
    (tmp_path / "settings.yaml").touch()
    (tmp_path / f".checkpoint.safetensors.{dead}.partial").touch()
    check_replaceable(tmp_path)
    (tmp_path / f".thesis.tex.{dead}.partial").touch()
    with pytest.raises(SettingsError, match=r"thesis\.tex"):
        check_replaceable(tmp_path)


HOLDER = """
import sys, time
from infocal.files import one_at_a_time
with one_at_a_time(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX systems only")
def test_a_folder_is_for_one_process_at_a_time_and_free_when_that_is_killed(tmp_path):
    folder = tmp_path / "new" / "out"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    refused = pytest.raises(BusyFolderError, match=r"another infocal process is at work in .*out; .*--out")
    with refused as caught, one_at_a_time(folder):
        pytest.fail("two at a time")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    holder.kill()
    holder.communicate()
    with one_at_a_time(folder):
        assert list(folder.iterdir()) == []
    with one_at_a_time(folder), one_at_a_time(tmp_path):  # a folder in it is another one
        pass


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX systems only")
def test_a_lock_on_a_folder_that_was_replaced_is_none(tmp_path, monkeypatch):
    folder, locked = tmp_path / "out", []
    folder.mkdir()
    usual = files._lock

    def replaced(path):
        held = usual(path)
        locked.append(os.fstat(held).st_ino)
        if len(locked) == 1:  # between opening it and looking
            with atomic_folder(path) as new:
                write_text(new / "a", "new")
        return held

    monkeypatch.setattr(files, "_lock", replaced)
    with one_at_a_time(folder):
        assert len(locked) == 2
        assert locked[0] != locked[1] == folder.stat().st_ino


def test_a_folder_that_nothing_was_put_into_goes_again(tmp_path):
    with one_at_a_time(tmp_path / "new" / "out"):
        pass
    assert list(tmp_path.iterdir()) == []
    with one_at_a_time(tmp_path / "new" / "out"):
        write_text(tmp_path / "new" / "out" / "a", "kept")
    (tmp_path / "mine").mkdir()
    with one_at_a_time(tmp_path / "mine"):
        pass
    assert sorted(item.name for item in tmp_path.iterdir()) == ["mine", "new"]


def test_what_a_kill_left_of_a_folder_is_mended_before_it_is_made(tmp_path, dead):
    (tmp_path / f".model.{dead}.old").mkdir()
    write_text(tmp_path / f".model.{dead}.old" / "a", "old")
    with one_at_a_time(tmp_path / "model"):
        assert (tmp_path / "model" / "a").read_text() == "old"


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX systems only")
def test_who_is_refused_removes_nothing_of_what_the_other_writes(tmp_path, dead):
    """Where processes cannot see each other, what one of them is writing looks as if it were left over."""
    (tmp_path / "model").mkdir()
    (tmp_path / f".model.{dead}.partial").mkdir()
    with one_at_a_time(tmp_path / "model"):
        (tmp_path / f".model.{dead}.partial").mkdir()
        with pytest.raises(BusyFolderError), one_at_a_time(tmp_path / "model"):
            pass
        assert (tmp_path / f".model.{dead}.partial").is_dir()
    with one_at_a_time(tmp_path / "model"):
        assert not (tmp_path / f".model.{dead}.partial").exists()


def test_a_folder_may_stand_where_nobody_may_look(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError

    monkeypatch.setattr(Path, "iterdir", refused)
    with one_at_a_time(tmp_path / "out"):
        assert (tmp_path / "out").is_dir()


def test_a_folder_that_is_removed_again_and_again_is_an_error(tmp_path, monkeypatch):
    def gone(path):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(files, "_lock", gone)
    with pytest.raises(UnwritableError, match="out: No such file"), one_at_a_time(tmp_path / "out"):
        pass


def test_a_file_is_no_folder_to_work_in(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(UnwritableError, match="a: it is a file"), one_at_a_time(tmp_path / "a"):
        pass
