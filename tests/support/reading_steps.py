"""Steps of another package that read in many ways, for the tests of the trace: `package_in` writes the package."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from engine.builder.trace.reads import Kind

STEP = """
class {name}(Step):
    makes: ClassVar[str] = "{name}"

    def run(self, out: Path) -> None:
{body}
"""
HEAD = '''"""Steps that read."""
import glob, importlib, importlib.util, mmap, multiprocessing, os, pkgutil, socket, subprocess, sys, tempfile
from pathlib import Path
from typing import ClassVar
from engine.step import Step
HERE = Path(__file__).parent
NAME = "words"
'''
READS = {
    "FString": (Kind.FILE, "words.txt", 'open(f"{HERE}/{NAME}.txt").read()'),
    "Glob": (Kind.FILE, "tables/one.csv", '[path.read_text() for path in sorted(HERE.glob("tables/*.csv"))]'),
    "OldGlob": (Kind.FILE, "tables/one.csv", '[open(path).read() for path in glob.glob(f"{HERE}/tables/*.csv")]'),
    "WithSuffix": (Kind.FILE, "step.txt", 'Path(__file__).with_suffix(".txt").read_text()'),
    "Descriptor": (Kind.FILE, "words.txt", 'os.close(os.open(HERE / "words.txt", os.O_RDONLY))'),
    "PackageData": (Kind.FILE, "words.txt", 'pkgutil.get_data("probe_package", "words.txt")'),
    "Helper": (Kind.FILE, "../helper.txt", "import probe_helper; probe_helper.words()"),
    "DynamicImport": (Kind.FILE, "plugin_one.py", 'importlib.import_module("probe_package.plugin_" + "one")'),
    "ImportByFile": (
        Kind.FILE,
        "plugin_two.py",
        (
            'spec = importlib.util.spec_from_file_location("x", HERE / "plugin_two.py")\n'
            "spec.loader.exec_module(importlib.util.module_from_spec(spec))"
        ),
    ),
    "Executed": (Kind.FILE, "script.py.txt", 'exec((HERE / "script.py.txt").read_text())'),
    "CpuCount": (Kind.MACHINE, "the number of CPUs", "os.cpu_count()"),
    "CpuCountOfPool": (Kind.MACHINE, "the number of CPUs", "multiprocessing.cpu_count()"),
    "Affinity": (Kind.MACHINE, "the number of CPUs", "os.sched_getaffinity(0)"),
    "HostName": (Kind.MACHINE, "the host's name", "socket.gethostname()"),
    "Listing": (Kind.FOLDER, "tables", "os.listdir(HERE / 'tables')"),
    "Walk": (Kind.FOLDER, "tables", "list(os.walk(HERE / 'tables'))"),
    "Missing": (Kind.FILE, "override.txt", 'try:\n    open(HERE / "override.txt")\nexcept OSError:\n    pass'),
    "Program": (Kind.PROGRAM, "/bin/true", 'subprocess.run(["/bin/true"])'),
    "Shell": (Kind.PROGRAM, "true", 'os.system("true")'),
    "Network": (
        Kind.NETWORK,
        "127.0.0.1:9",
        "try:\n    socket.create_connection(('127.0.0.1', 9), timeout=1)\nexcept OSError:\n    pass",
    ),
    "Child": (
        Kind.FILE,
        "words.txt",
        'pid = os.fork()\nif pid == 0:\n    open(HERE / "words.txt").read()\n    os._exit(0)\nos.waitpid(pid, 0)',
    ),
    "HardLink": (Kind.FILE, "words.txt", 'os.link(HERE / "words.txt", out / "words.txt")'),
    "SymbolicLink": (Kind.FILE, "words.txt", 'os.symlink(HERE / "words.txt", tempfile.mkdtemp() + "/w")'),
    "Mapped": (Kind.FILE, "native.so", 'self.__dict__["m"] = __import__("ctypes").CDLL(str(HERE / "native.so"))'),
    "AtImport": (Kind.FILE, "words.txt", "import probe_package.tables"),
    "AtImportAgain": (Kind.FILE, "words.txt", "from probe_package.tables import ROWS"),
    "Own": (
        None,
        "",
        (
            'folder = tempfile.mkdtemp()\n(Path(folder) / "a").write_text("x")\n(Path(folder) / "a").read_text()\n'
            '(out / "b").write_text("x")\n(out / "b").read_text()\n'
            'os.rename(out / "b", out / "c")\nopen(out / "c").read()'
        ),
    ),
    "Relative": (Kind.FILE, "words.txt", 'os.chdir(HERE)\nopen("words.txt").read()'),
    "Exists": (Kind.STATUS, "override.txt", '(HERE / "override.txt").exists()'),
    "IsDir": (Kind.STATUS, "overrides", '(HERE / "overrides").is_dir()'),
    "Status": (Kind.STATUS, "words.txt", 'os.stat(HERE / "words.txt").st_mode'),
    "Access": (Kind.STATUS, "words.txt", 'os.access(HERE / "words.txt", os.W_OK)'),
    "ReadLink": (Kind.STATUS, "words.txt", 'try:\n    os.readlink(HERE / "words.txt")\nexcept OSError:\n    pass'),
    "StatusInChild": (
        Kind.STATUS,
        "override.txt",
        'pid = os.fork()\nif pid == 0:\n    (HERE / "override.txt").exists()\n    os._exit(0)\nos.waitpid(pid, 0)',
    ),
    "FileSystem": (Kind.STATUS, "words.txt", 'os.statvfs(HERE / "words.txt").f_bsize'),
    "Attribute": (
        Kind.STATUS,
        "words.txt",
        'try:\n    os.getxattr(HERE / "words.txt", "user.x")\nexcept OSError:\n    pass',
    ),
    "Database": (
        Kind.FILE,
        "words.txt",
        'import sqlite3\nsqlite3.connect(f"file:{HERE}/words.txt?mode=ro", uri=True).close()',
    ),
    "ExclusiveOnly": (Kind.FILE, "words.txt", 'os.close(os.open(HERE / "words.txt", os.O_RDWR | os.O_EXCL))'),
    "ProcessLimit": (Kind.MACHINE, "a limit of processes", "__import__('resource').prlimit(0, 7)"),
    "User": (Kind.MACHINE, "the user", "os.getuid()"),
    "UserByName": (Kind.MACHINE, "the user", "__import__('getpass').getuser()"),
    "Groups": (Kind.MACHINE, "the user's groups", "os.getgroups()"),
    "Umask": (Kind.MACHINE, "the umask", "os.umask(os.umask(0))"),
    "Limit": (Kind.MACHINE, "a limit of processes", "__import__('resource').getrlimit(7)"),
    "Spawn": (
        Kind.PROGRAM,
        sys.executable,
        "each = multiprocessing.get_context('spawn').Process(target=print)\neach.start()\neach.join()",
    ),
    "Resolved": (
        None,
        "",
        "(out.parent / 'x').resolve()\n(out / 'y').mkdir()\n(out / 'y').exists()\n(out.parent).is_dir()",
    ),
    "Appended": (Kind.FILE, "words.txt", 'open(HERE / "words.txt", "r+").read()'),
}
"""What each step reads, as its kind and its name or its path in the package, and the body of the step."""
FILES = {
    "__init__.py": "",
    "words.txt": "words",
    "step.txt": "step",
    "tables/one.csv": "1",
    "plugin_one.py": "X = 1",
    "plugin_two.py": "X = 2",
    "script.py.txt": "Y = 3",
    "tables.py": "from pathlib import Path\nROWS = (Path(__file__).parent / 'words.txt').read_text()\n",
}


def package_in(site: Path) -> Path:
    """Write the package `probe_package` and the module `probe_helper` into a folder of the import path."""
    package = site / "probe_package"
    for name, text in FILES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    bodies = {name: textwrap.indent(body, "        ") for name, (_, _, body) in READS.items()}
    steps = "".join(STEP.format(name=name, body=body) for name, body in bodies.items())
    (package / "step.py").write_text(HEAD + steps)
    (site / "probe_helper.py").write_text(
        "from pathlib import Path\n\n\ndef words():\n    return (Path(__file__).parent / 'helper.txt').read_text()\n"
    )
    (site / "helper.txt").write_text("help")
    return package
