"""Which stores are this user's own: those that `recipe` made for the user here, and those that the user trusts."""

# A store of somebody else, for example one that came with a cloned repository, is not read at all: its records would be
# answers of strangers. So each own store has a random number in its file `id`, and the user's list has an entry for the
# number: a file outside of the store, with the inode of the store's folder. A store with files that git tracks is
# nobody's own: a pull may have brought them. An entry remembers for which state of git's indexes nothing was tracked.
#
# A no-op build imports this module, so it imports little.

from __future__ import annotations

import os

from engine.system import regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.errors import UsageError

VARIABLE = "RECIPE_TRUST_CACHE"
"""The environment variable that trusts every store if it is "1", for a CI that restores its own stores."""
_ID = "id"
"""The file in a store with the store's random number."""
_DIGITS = 32
"""The number of hexadecimal digits of a store's number."""
_NOWHERE = os.devnull
"""A path below which nothing can be."""
_LONGEST = 8192
_SHOWN = 3
"""The number of tracked files that a message names."""
_READ = frozenset({
    _ID, "format", "artifacts", "files", "records", "logs", "traces", "staging", "locks", "snapshots", "plans", "kept",
    "heads", "stat", "resolutions", "tools", "pushed", "history", "envelopes", "incoming", "quarantine",
})  # fmt: skip
"""The names in a store's folder that are read. A folder without any of them is an empty store."""


def is_own(root: str) -> bool:
    """Say whether the store in the folder `root` is on the user's list for this very folder, and git tracks none of it.

    A copy of a store is another folder. A folder that was moved on its file system is the same one.
    """
    if os.environ.get(VARIABLE) == "1":
        return True
    try:
        number, (inode, seen, place) = _listed_entry(root)
        state = _git_state(root)
        if state != seen:
            if _tracked(root):
                return False
            try:
                _write_entry(number, inode, state, place)
            except OSError:
                return True  # the next build asks git again
    except (OSError, ValueError):
        return False
    return True


def enter(root: str) -> None:
    """Let this program use the store in `root`. An empty store is put on the list. Raises UsageError for others."""
    if is_own(root):
        return
    if not _is_empty(root):
        _refuse_unlisted(root)
        _refuse_tracked(root)
        return
    _make(root)
    _refuse_tracked(root)
    try:
        _put_on_list(root)
    except OSError:
        return  # without a list, a new store is used all the same: nothing of it is anybody's answer


def trust(root: str) -> None:
    """Put a store on the user's list, under a new number. Raises OSError, and UsageError where git tracks it."""
    _refuse_tracked(root)
    _put_on_list(root)


def forget(root: str) -> bool:
    """Take the store of a folder off the user's list; return whether it was there. Raises OSError."""
    try:
        own = _number_in(root)  # of a store that was moved
    except (OSError, ValueError):
        own = ""
    numbers = [number for number, place in _every_entry() if number == own or place == os.path.abspath(root)]
    for number in numbers:
        os.unlink(_entry(number))
    return bool(numbers)


def listed() -> list[str]:
    """Return the folders of all stores on the user's list, as they were when they were put there."""
    return sorted({place for _, place in _every_entry()})


def folder() -> str:
    """Return the folder of the user's list: `recipe/stores` in XDG_STATE_HOME, which is `~/.local/state` by default.

    A relative path is ignored, as the XDG specification says: a repository could bring the list. A user without a home
    has no list.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base if os.path.isabs(base) else _NOWHERE, "recipe", "stores")


# -- the list --------------------------------------------------------------------------------------------------


def _listed_entry(root: str) -> tuple[str, tuple[str, str, str]]:
    """Return the number and the entry of a store. Raises OSError and ValueError for a store that is not on the list."""
    number = _number_in(root)
    entry = _read_entry(number)
    if entry[0] != str(os.stat(root).st_ino) or os.stat(_entry(number)).st_uid != os.geteuid():
        raise ValueError(number)
    return number, entry


def _number_in(root: str) -> str:
    number = _read(os.path.join(root, _ID)).strip()
    if len(number) != _DIGITS or not number.isalnum():
        raise ValueError(number)
    return number


def _put_on_list(root: str) -> None:
    """Write an entry and then its number into the store, also in place of another number. Raises OSError."""
    number = os.urandom(_DIGITS // 2).hex()
    os.makedirs(folder(), mode=0o700, exist_ok=True)
    _write_entry(number, str(os.stat(root).st_ino), "", os.path.abspath(root))
    _write(os.path.join(root, _ID), f"{number}\n")


def _entry(number: str) -> str:
    return os.path.join(folder(), number)


def _read_entry(number: str) -> tuple[str, str, str]:
    """Return an entry: the inode of a store's folder, the state of git's indexes, and the folder's path.

    In this state of the indexes nothing was tracked; it is "" for a new entry.
    """
    first, _, place = _read(_entry(number)).partition("\n")
    inode, _, state = first.partition(" ")
    return inode, state, place.rstrip("\n")


def _write_entry(number: str, inode: str, state: str, place: str) -> None:
    _write(_entry(number), f"{inode} {state}\n{place}\n")


def _every_entry() -> Iterator[tuple[str, str]]:
    """Yield the number and the folder of each store on the list."""
    try:
        numbers = os.listdir(folder())
    except OSError:
        return
    for number in numbers:
        try:
            yield number, _read_entry(number)[2]
        except (OSError, ValueError):
            continue


def _read(path: str) -> str:
    with regular.open_file(path) as file:
        return file.read(_LONGEST).decode("utf-8", "surrogateescape")


def _write(path: str, text: str) -> None:
    """Replace a file in one step. Raises OSError."""
    new = f"{path}.{os.urandom(4).hex()}"
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, text.encode("utf-8", "surrogateescape"))
        os.replace(new, path)
    finally:
        os.close(handle)


# -- git -------------------------------------------------------------------------------------------------------


def _git_state(root: str) -> str:
    """Return a text that changes when an index of a work tree around a store changes; "" outside of work trees."""
    rows = [os.stat(os.path.join(folder, "index")) for _, folder in _work_trees(os.path.realpath(root))]
    return ",".join(f"{row.st_mtime_ns}-{row.st_size}-{row.st_ino}" for row in rows)


def _work_trees(place: str) -> Iterator[tuple[str, str]]:
    """Yield the root of each work tree of git around a place, and the folder with its index. Raises OSError."""
    top = ""
    while place != top:
        top, place = place, os.path.dirname(place)
        folder = os.path.join(top, ".git")
        if os.path.isfile(folder):  # in a submodule, and in a further work tree
            folder = os.path.join(top, os.fsdecode(regular.read(folder)).removeprefix("gitdir:").strip())
        if os.path.isfile(os.path.join(folder, "index")):
            yield top, folder


def _tracked(root: str) -> list[str]:
    """Return the files of a store that git tracks and that are read. Raises OSError and ValueError.

    A file system may pass over upper and lower case; then the file system says whether a folder is the store.
    """
    from engine.system import git

    real = os.path.realpath(root)
    names = set()
    for top, folder in _work_trees(real):
        inner = "" if top == real else f"{os.path.relpath(real, top)}/"
        for name in git.tracked(top, folder, [inner + each for each in _READ]):
            start = os.path.join(top, name[: len(inner)])
            if name.startswith(inner) or (os.path.exists(start) and os.path.samefile(start, real)):
                names.add(name[len(inner) :])
    return sorted(name for name in names if name.partition("/")[0].lower() in _READ)


# -- new stores, and what is refused ---------------------------------------------------------------------------


def _is_empty(root: str) -> bool:
    try:
        return _READ.isdisjoint(os.listdir(root))
    except FileNotFoundError:
        return not os.path.islink(root)


def _make(root: str) -> None:
    """Make the folder of a new store. A folder that is there must be the user's: another could put records into it."""
    try:
        os.makedirs(root)
    except FileExistsError:
        owner = os.stat(root).st_uid
        if owner != os.geteuid():
            raise _refusal(
                f"the folder {root} is empty and belongs to another user: no store is made in it",
                [f"its owner is the user {owner}, and you are the user {os.geteuid()}"],
                f"take another folder; or, if you know its owner, `recipe cache trust {root}`",
            ) from None


def _refuse_unlisted(root: str) -> None:
    """Raise UsageError for a store that is not on the user's list, whatever git tracks."""
    try:
        _listed_entry(root)
    except (OSError, ValueError):
        raise _refusal(
            f"the store at {root} is not yours: nothing in it was read",
            [
                "it came with a repository, or is a copy, or is older than the list of stores that `recipe` made here",
                f"list: {folder()}",
            ],
            f"remove it; or, if you know who made it, `recipe cache trust {root}`; a CI that restores its own store "
            f"sets {VARIABLE}=1",
        ) from None


def _refuse_tracked(root: str) -> None:
    """Raise UsageError for a store with files that git tracks, and where git's index cannot be read."""
    try:
        names = _tracked(root)
    except (OSError, ValueError) as error:
        raise _refusal(
            f"it is not known whether git tracks files of the store at {root}: nothing in it was read",
            [str(error)],
            f"move the store out of the work tree; or set {VARIABLE}=1, if you know all that git brings",
        ) from None
    if names:
        more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
        raise _refusal(
            f"git tracks files of the store at {root}: nothing in it was read",
            [*names[:_SHOWN], *more, "a pull or a checkout brings such files: records of somebody else"],
            f"`git rm -r {root}` removes these files; if you know who made them, `git rm -r --cached {root}` only "
            f"takes them out of git, and `recipe cache trust {root}` trusts the store then; {VARIABLE}=1 trusts it as "
            "it is",
        )


def _refusal(what: str, facts: list[str], hint: str) -> UsageError:
    from engine.errors import UsageError

    return UsageError(what, facts, hint)
