"""Failures of the operating system as errors for people: no more open files, processes, memory or disk space."""

from __future__ import annotations

import errno
import os
import resource

from engine.errors import UserError, causes

_INSTALL = "install recipe again, with all that it needs: pip install --force-reinstall, or a new virtual environment"
_MEMORY = (
    "the memory is used up",
    "close other programs, raise the limit (`ulimit -v`), or use a machine with more memory",
)
_PROCESSES = (
    "a resource of the system is used up for now, usually the number of processes or threads",
    "end other programs, or raise the limit: `ulimit -u`, or the limit of the container",
)
_FULL = ("the disk is full", "free some space, or name a folder on another disk with --cache")
_KNOWN = {
    errno.ENFILE: ("the machine has too many open files", "close other programs"),
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: _PROCESSES,
    errno.ENOSPC: _FULL,
    errno.EDQUOT: ("the disk quota is used up", "free some of your quota, or name another folder with --cache"),
    errno.EROFS: ("the disk is read-only", "name a writable folder with --cache, RECIPE_CACHE or -o"),
    errno.EACCES: ("a file or folder does not give you the right to use it", "change its rights, or name another one"),
    errno.EFBIG: ("a file is larger than the system allows", "raise the limit: `ulimit -f unlimited`"),
    errno.EIO: ("a disk reports an error", "look for the cause in the system's log: `dmesg`"),
}
_WORDS = {
    "Too many open files": errno.EMFILE,
    "annot allocate memory": errno.ENOMEM,
    "failed to map segment": errno.ENOMEM,
    "can't start new thread": errno.EAGAIN,
    "No space left on device": errno.ENOSPC,
}
"""Words in errors of other kinds, for example of the dynamic linker, that name a failure of the system."""


class SystemCallError(UserError):
    """The operating system refused what the program needs (exit 1)."""


def failure(error: BaseException) -> SystemCallError | None:
    """Return what the operating system refused; None for an error that is not the system's."""
    limit = reached(error)
    if limit is not None:
        return limit
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno is not None:
            hint = "the option --debug shows which part of recipe made the call"
            return lost_folder() or SystemCallError(f"the system refused a call: {_shown(cause)}", hint=hint)
        if isinstance(cause, ImportError) and cause.name and not cause.name.startswith("engine"):
            name = cause.name.partition(".")[0]
            what = f"the package {name!r}, which recipe needs, cannot be imported"
            return SystemCallError(what, [str(cause)], _INSTALL)
    return None


def reached(error: BaseException) -> SystemCallError | None:
    """Return the limit of the machine or of the user that an error comes from, such as memory; None for none."""
    for cause in causes(error):
        number = _number(cause)
        if number == errno.EMFILE:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            facts = [_shown(cause), f"the limit is {soft} (it can be raised to {hard})"]
            return SystemCallError("the program has too many open files", facts, "raise the limit: `ulimit -n 4096`")
        if number in _KNOWN:
            what, hint = _KNOWN[number]
            return SystemCallError(what, [_shown(cause)], hint)
    return None


def lost_folder() -> SystemCallError | None:
    """Return an error if the working folder does not exist any more."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return SystemCallError("the working folder does not exist any more", hint="change to a folder that exists: cd")
    except OSError as error:
        return SystemCallError(
            "the working folder cannot be read", [str(error.strerror)], "change to another folder: cd"
        )
    return None


def _number(cause: BaseException) -> int | None:
    """Return the error number of a failure that every part of the program can meet; None for other errors."""
    if isinstance(cause, MemoryError):
        return errno.ENOMEM
    if isinstance(cause, OSError) and cause.errno is not None:
        return cause.errno
    return next((number for words, number in _WORDS.items() if words in str(cause)), None)


def _shown(cause: BaseException) -> str:
    if isinstance(cause, OSError) and cause.strerror:
        return f"{cause.strerror}: {os.fsdecode(cause.filename)}" if cause.filename else cause.strerror
    return str(cause) or type(cause).__name__
