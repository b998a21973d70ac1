"""The hook of a worker: it notes the audit events of Python that tell what the present job reads."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

from engine.builder import audit
from engine.builder.audit import Handler
from engine.builder.executors import environment
from engine.builder.trace import call_sites
from engine.builder.trace.reads import Kind
from engine.builder.trace.recorder import Recorder

_IMPORTLIB = "<frozen importlib._bootstrap_external>"
_HERE = os.path.dirname(__file__)
_OURS = (os.path.join(_HERE, ""), os.path.join(os.path.dirname(_HERE), "zygote_loader.py"))
"""The code of the hook and of the cache of bytecode, whose reads are no reads of a job."""
_NOWHERE = os.path.join(environment.FIXED[environment.BYTECODE], "")
"""Where Python looks for bytecode files, in vain."""
_MODULES = (".py", ".pyc")
_STATUS = ("stat", "lstat", "access", "readlink", "statvfs", "getxattr", "listxattr")
_WITH_EVENT = "subprocess.py"
"""The module that starts processes and has an event of its own for each."""
_RECORDER = Recorder()
_MACHINE: Mapping[str, str] = {
    "os.cpu_count": "the number of CPUs",
    "os.process_cpu_count": "the number of CPUs",
    "os.sched_getaffinity": "the number of CPUs",
    "os.getlogin": "the user's name",
    **dict.fromkeys(("os.getuid", "os.geteuid", "os.getresuid"), "the user"),
    **dict.fromkeys(
        ("os.getgid", "os.getegid", "os.getresgid", "os.getgroups", "os.getgrouplist"), "the user's groups"
    ),
    "os.umask": "the umask",
    **dict.fromkeys(("resource.getrlimit", "resource.prlimit"), "a limit of processes"),
    "os.getloadavg": "the load of the machine",
    "socket.gethostname": "the host's name",
}
"""The events that tell a job something about the machine."""


def install() -> None:
    """Note what this process reads from now on.

    Processes that this process forks do so, too.
    """
    _RECORDER.begin()
    os.register_at_fork(after_in_child=_RECORDER.in_copy)
    audit.hand_to(_HANDLERS, without=_OURS)


def importing() -> AbstractContextManager[None]:
    """Return a context in which a zygote imports a module: what is read counts for every job of its forks."""
    return _RECORDER.importing()


def recording(step: str, folder: str, inputs: Iterable[str]) -> AbstractContextManager[None]:
    """Return a context in which the reads of a job are noted; the reads are written to a file in the job's folder.

    `step` is the class of the job's step, written as `module:Class`. `inputs` are the paths of the job's inputs.
    """
    return _RECORDER.recording(folder, call_sites.package_of_class(step), tuple(inputs))


def _on_open(arguments: tuple[Any, ...], frame: FrameType) -> None:
    path, _, flags = arguments
    if isinstance(path, int) or path is None:
        return
    path = os.fsdecode(path)
    if path.startswith(_NOWHERE):
        return
    access = flags & os.O_ACCMODE
    writes = access != os.O_RDONLY
    is_new = flags & os.O_TRUNC or (flags & os.O_CREAT and flags & os.O_EXCL)
    if writes and (is_new or not os.path.exists(path)):
        _RECORDER.written(path)
    elif access == os.O_WRONLY:
        return  # what lay there before is neither read nor made by the job
    elif frame.f_code.co_filename == _IMPORTLIB and path.endswith(_MODULES):
        _RECORDER.code(path, frame)
    else:
        _RECORDER.read_path(path, Kind.FILE, frame)


def _on_list(arguments: tuple[Any, ...], frame: FrameType) -> None:
    path = arguments[0]
    if isinstance(path, int) or frame.f_code.co_filename == _IMPORTLIB:
        return
    _RECORDER.read_path(os.curdir if path is None else os.fsdecode(path), Kind.FOLDER, frame)


def _on_status(arguments: tuple[Any, ...], frame: FrameType) -> None:
    path = arguments[0]
    if not isinstance(path, int):
        _RECORDER.status(os.fsdecode(path), frame)


def _on_process(arguments: tuple[Any, ...], frame: FrameType) -> None:
    caller = frame.f_back
    if caller is None or os.path.basename(caller.f_code.co_filename) != _WITH_EVENT:
        _RECORDER.read(Kind.PROGRAM, os.fsdecode(arguments[1][0]), frame)


def _on_connect(arguments: tuple[Any, ...], frame: FrameType) -> None:
    address = arguments[1]
    text = ":".join(map(str, address[:2])) if isinstance(address, tuple) else os.fsdecode(address)
    _RECORDER.read(Kind.NETWORK, text, frame)


def _on_named(kind: Kind) -> Handler:
    """Return the handler of an event whose first argument is the name of what is read, or None."""

    def handler(arguments: tuple[Any, ...], frame: FrameType) -> None:
        if arguments[0] is not None:
            _RECORDER.read(kind, os.fsdecode(arguments[0]), frame)

    return handler


def _on_database(arguments: tuple[Any, ...], frame: FrameType) -> None:
    path = os.fsdecode(arguments[0])
    if path.startswith("file:"):
        path = path.removeprefix("file:").partition("?")[0]
    _RECORDER.read_path(path, Kind.FILE, frame)


def _on_machine(what: str) -> Handler:
    return lambda _arguments, frame: _RECORDER.read(Kind.MACHINE, what, frame)


def _on_folder(arguments: tuple[Any, ...], _frame: FrameType) -> None:
    path = os.fsdecode(arguments[0])
    if not os.path.isdir(path):  # the event comes before Python asks the system, which may refuse
        _RECORDER.written(path, folder=True)


def _on_move(arguments: tuple[Any, ...], frame: FrameType) -> None:
    source, target = map(os.fsdecode, arguments[:2])
    is_folder = os.path.isdir(source)
    _RECORDER.read_path(source, Kind.FOLDER if is_folder else Kind.FILE, frame)
    _RECORDER.written(target, folder=is_folder)


def _on_import(arguments: tuple[Any, ...], frame: FrameType) -> None:
    name, importer, names, level = arguments
    if level:
        package = str((importer or {}).get("__package__") or "")
        name = importlib.util.resolve_name("." * level + name, package)
    _RECORDER.imports([name, *(f"{name}.{each}" for each in names)], frame)


def _on_import_by_name(arguments: tuple[Any, ...], frame: FrameType) -> None:
    _RECORDER.imports([importlib.util.resolve_name(*arguments, *(None,) * (2 - len(arguments)))], frame)


_HANDLERS: Mapping[str, Handler] = {
    "builtins.__import__": _on_import,
    "importlib.import_module": _on_import_by_name,
    "open": _on_open,
    **dict.fromkeys(("os.listdir", "os.scandir"), _on_list),
    **dict.fromkeys((f"os.{name}" for name in _STATUS), _on_status),
    "os.mkdir": _on_folder,
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), _on_move),
    "_posixsubprocess.fork_exec": _on_process,
    **dict.fromkeys(("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"), _on_named(Kind.PROGRAM)),
    "socket.connect": _on_connect,
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname"), _on_named(Kind.NETWORK)),
    "sqlite3.connect": _on_database,
    **{event: _on_machine(what) for event, what in _MACHINE.items()},
}
