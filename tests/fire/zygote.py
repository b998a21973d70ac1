"""Forks builders that have the program imported already: thousands of them are started in minutes.

Its arguments are further modules to import. Reads a request a line, {"words", "cwd", "environment", "output", "hook"},
and answers {"pid"}; tells {"pid", "code"} of each that ended. A builder runs `engine.cli.main`, as `python -m engine`
does, in a process group of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import tempfile

MODULES = (
    "engine.cli", "engine.snapshot", "engine.commands", "engine.commands.build", "engine.commands.cache", "engine.api",
    "engine.store.collection", "engine.store.verification", "engine.report", "engine.report.json_lines",
    "engine.report.snapshots", "engine.report.plan_files",
    "engine.steps.fetch", "engine.steps.package", "networkx", "yaml", "pydantic",
)  # fmt: skip


def main() -> None:
    for name in (*MODULES, *sys.argv[1:]):
        importlib.import_module(name)
    wake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting = b""
    while True:
        ready, _, _ = select.select([0, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            _tell_ended()
        if 0 in ready:
            read = os.read(0, 1 << 16)
            if not read:
                return
            *lines, waiting = (waiting + read).split(b"\n")
            for line in lines:
                _start(json.loads(line))


def _start(request: dict) -> None:
    pid = os.fork()
    if pid == 0:
        _build(request)
    _say({"pid": pid})


def _build(request: dict) -> None:
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):  # a run in the background may ignore them
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for number, name in ((1, "stdout"), (2, "stderr")):
        handle = os.open(os.path.join(request["output"], name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(handle, number)
        os.close(handle)
    home = os.path.dirname(importlib.import_module("engine").__file__)
    sys.argv = [os.path.join(home, "__main__.py"), *request["words"]]
    arrange(**{name: request[name] for name in ("close", "full", "lost", "limits") if name in request})
    code = 1
    try:
        if request["hook"]:
            importlib.import_module("fire_hook").lay(request["hook"])
        importlib.import_module("engine.cli").main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:  # noqa: BLE001 - told as Python itself does
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, AttributeError):
                stream.flush()
        os._exit(code)


def arrange(
    *, close: tuple[int, ...] = (), full: tuple[int, ...] = (), lost: bool = False, limits: dict[str, int] | None = None
) -> None:
    """Close standard streams or lead them to a full disk, leave a folder that is gone, and set limits of resources."""
    for number in full:
        handle = os.open("/dev/full", os.O_WRONLY)
        os.dup2(handle, number)
        os.close(handle)
    for number in close:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)  # as Python finds them
    if lost:
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        os.rmdir(folder)
    for name, limit in (limits or {}).items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))


def _tell_ended() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say({"pid": pid, "code": os.waitstatus_to_exitcode(status)})


def _say(answer: dict) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
