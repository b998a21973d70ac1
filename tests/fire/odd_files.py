"""Things that may lie where a regular file is expected."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path


def _socket(path: Path) -> None:
    """Bind by a relative name: the path of a socket may have 107 characters."""
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def _filled_folder(path: Path) -> None:
    (path / "inner").mkdir(parents=True)
    os.mkfifo(path / "inner" / "pipe")


ODD: Mapping[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "folder": _filled_folder,
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "empty file": Path.touch,
}


def put(kind: str, path: Path) -> None:
    """Put an odd file in the place of whatever lies at `path`."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    ODD[kind](path)
