"""The script that starts a zygote: each module runs the source that lies there, and bytecode is kept by content."""

# Python believes the bytecode of a module in `__pycache__` if it names the size of the source and the second of its
# last change, or even without a look at the source. Keys are made from sources, so workers read no `__pycache__`: their
# variable PYTHONPYCACHEPREFIX says so. The loader of this file only saves the time of compiling.
#
# Python compiles a script from its text. This file therefore imports nothing of the program before its loader is in
# place, and little of the standard library, which would be compiled at each start.

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from importlib import machinery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

_OPTION = "--bytecode="
_COMPILER = f"{sys.version}\0{sys.flags.optimize}\0".encode()
_SEAL = hashlib.sha256().digest_size
_MOST = 64
"""The largest number of files in each of the 256 folders of a cache; the files written longest ago are removed."""


class SourceLoader(machinery.SourceFileLoader):
    """Loads a module from its source, and takes the bytecode of this source from a cache.

    A file of the cache is named after the interpreter and the source. It begins with a checksum of its name and of the
    bytecode behind it.
    """

    def __init__(self, folder: str, fullname: str, path: str) -> None:
        """`folder` is the folder of the cache."""
        super().__init__(fullname, path)
        self._folder = folder

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the module's source, which is read once. Raises OSError, and SyntaxError."""
        path = self.get_filename(fullname)
        source = self.get_data(path)
        name = _hash(_COMPILER, source).hexdigest()
        file = os.path.join(self._folder, name[:2], name)
        bytecode = _read(file)
        if bytecode is not None:
            code: CodeType = marshal.loads(bytecode)  # noqa: S302 - the checksum fits, so the bytes are as they were written
            return code if code.co_filename == path else _moved(code, path)
        code = self.source_to_code(source, path)
        try:  # noqa: SIM105 - Python would compile contextlib at each start
            _write(file, marshal.dumps(code))
        except OSError:
            pass  # a cache that cannot be written costs time only
        return code


def install(folder: str) -> None:
    """Let this process and its forks load all modules by `SourceLoader`, with the cache in `folder`."""

    def loader(fullname: str, path: str) -> SourceLoader:
        return SourceLoader(folder, fullname, path)

    hook = machinery.FileFinder.path_hook(
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),  # the order is Python's own
        (loader, machinery.SOURCE_SUFFIXES),  # type: ignore[arg-type]  # a function is called like a class
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


def command(folder: str, import_path: list[str]) -> list[str]:
    """Return the command line of a zygote with this interpreter, a cache of bytecode and Python's import path."""
    script = os.path.abspath(__file__)
    return [sys.executable, "-P", "-s", script, f"{_OPTION}{folder}", *map(os.path.abspath, import_path)]


def _moved(code: CodeType, path: str) -> CodeType:
    """Return code that another module with the same source had, with the path of the source for tracebacks."""
    inner = (_moved(each, path) if isinstance(each, type(code)) else each for each in code.co_consts)
    return code.replace(co_filename=path, co_consts=tuple(inner))


def _read(file: str) -> memoryview | None:
    """Return the bytecode in a file; None without the file, and if the file has changed since it was written."""
    try:
        with open(file, "rb", buffering=0) as stream:
            raw = stream.read()
    except OSError:
        return None
    bytecode = memoryview(raw)[_SEAL:]
    return bytecode if raw[:_SEAL] == _seal(file, bytecode) else None


def _write(file: str, bytecode: bytes) -> None:
    """Write a file in one step, and remove the oldest files beside it if there are too many. Raises OSError."""
    folder, fresh = os.path.dirname(file), f"{file}.{os.getpid()}"
    os.makedirs(folder, exist_ok=True)
    try:
        with open(fresh, "wb") as stream:
            stream.write(_seal(file, bytecode) + bytecode)
        os.replace(fresh, file)
    except OSError:
        os.unlink(fresh)
        raise
    with os.scandir(folder) as entries:
        oldest = sorted(entries, key=lambda entry: entry.stat().st_mtime_ns)[:-_MOST]
    for entry in oldest:
        os.unlink(entry.path)


def _seal(file: str, bytecode: bytes | memoryview) -> bytes:
    return _hash(os.path.basename(file).encode(), bytecode).digest()


def _hash(*parts: bytes | memoryview) -> hashlib._Hash:
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(part)
    return hasher


if __name__ in ("__main__", "__mp_main__") and sys.argv[1:] and sys.argv[1].startswith(_OPTION):
    install(sys.argv[1].removeprefix(_OPTION))
    # A process that `multiprocessing` spawns runs this file by the second name, and has its import path already.
    folders = sys.argv[2:] if __name__ == "__main__" else list(sys.path)
    sys.path[:] = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    __import__("engine")  # this one, also where a user's own `engine` stands first on the import path

    sys.path[:] = folders
    if __name__ == "__main__":
        from engine.builder.zygote import main

        main()
