"""Only regular files are opened: whatever else lies at a path is an error at once, and nothing is waited for."""

import ast
import os
import re
import socket
from pathlib import Path

import pytest

import engine
from engine import digest
from engine.store import disk
from engine.system import regular


def listening(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


OTHERS = {
    "a directory": os.mkdir,
    "a named pipe": os.mkfifo,
    "a socket": listening,
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to a pipe": lambda path: (os.mkfifo(path.with_name("pipe")), path.symlink_to("pipe")),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_regular_file_is_an_error_at_once(kind, tmp_path):
    OTHERS[kind](tmp_path / "it")
    before = len(os.listdir("/proc/self/fd"))
    for read in (regular.read, regular.read_text, digest.of_file):
        with pytest.raises(OSError, match=r"it is a|Is a directory|Too many levels|No such") as refused:
            read(tmp_path / "it")
        assert refused.value.filename == str(tmp_path / "it")
    assert len(os.listdir("/proc/self/fd")) == before, "no handle is left open"
    if kind == "a named pipe":
        with pytest.raises(regular.NotRegularError) as told:
            regular.read(tmp_path / "it")
        assert told.value.kind == "a named pipe, no regular file"


def test_a_regular_file_and_a_link_to_one_are_read(tmp_path):
    (tmp_path / "it").write_bytes(b"content")
    (tmp_path / "link").symlink_to("it")
    assert regular.read(tmp_path / "link") == b"content"
    assert regular.read_text(tmp_path / "it") == "content"


def test_folders_nested_deeper_than_calls_of_python_are_walked(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    depth = 1010
    for _ in range(depth):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)
    try:
        assert digest.walk(tmp_path) == ["d/" * depth + "file"]
    finally:
        disk.remove(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


ENGINE = Path(engine.__file__).parent
OUTSIDE = ("kit", "runtimes", "server", "client", "steps", "system")
"""Rooms whose code reads what a step or a server has checked or made, in a process with a time limit of its own."""
OTHERWISE = {
    "builder/worker.py": "opens its own log",
    "builder/zygote.py": "opens the null device",
    "builder/zygote_loader.py": "reads and writes files of its own cache, before it can import a module of the program",
    "builder/trace/packages.py": "reads the lists of installers, where the audit hook leaves it out",
    "builder/trace/recorder.py": "reads a file of /proc, and writes into the folder of its own job",
    "machine/cpu.py": "reads files of /proc and /sys",
    "snapshot.py": "reads a pipe of its own, its own folder, and files of /proc and /sys",
    "report/ci.py": "adds lines to the file that GitHub Actions names, and never waits on a pipe",
    "store/ledger.py": "adds lines to a file of its own",
    "store/remote/downloads.py": "writes a part of a download, which is a regular file of its own",
    "store/remote/keys.py": "writes a new file for a key",
    "store/disk.py": "writes a new file, and flushes a folder or a file that was checked",
    "store/file_lock.py": "opens lock files for writing, too, which never waits on a pipe",
}
"""Modules that open files in another way, each with the reason."""


def opens(path):
    """Return the lines in which a module opens or reads a file by Python's own functions."""
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if re.search(r"open\(|\.read_(text|bytes)", text) else ():
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("open", "os.open", "io.open") or (
                name.endswith((".read_text", ".read_bytes")) and not name.startswith("regular.")
            ):
                yield f"{node.lineno}: {ast.unparse(node)[:80]}"


def test_no_file_is_opened_in_a_way_that_a_pipe_could_stop():
    checked = [path for path in ENGINE.rglob("*.py") if path.relative_to(ENGINE).parts[0] not in OUTSIDE]
    assert len(checked) > 100
    lines = {str(path.relative_to(ENGINE)): list(opens(path)) for path in checked}
    assert {name: each for name, each in lines.items() if each and name not in OTHERWISE} == {}
    assert [name for name in OTHERWISE if not lines.get(name)] == []
