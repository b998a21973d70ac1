"""Steps of another package that read in many ways, for the tests of the trace: `package_in` writes the package."""

from __future__ import annotations

from pathlib import Path

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
BODIES = {
    "FString": 'open(f"{HERE}/{NAME}.txt").read()',
    "Glob": '[path.read_text() for path in sorted(HERE.glob("tables/*.csv"))]',
    "OldGlob": '[open(path).read() for path in glob.glob(f"{HERE}/tables/*.csv")]',
    "WithSuffix": 'Path(__file__).with_suffix(".txt").read_text()',
    "Descriptor": 'os.close(os.open(HERE / "words.txt", os.O_RDONLY))',
    "PackageData": 'pkgutil.get_data("probe_package", "words.txt")',
    "Helper": "import probe_helper; probe_helper.words()",
    "DynamicImport": 'importlib.import_module("probe_package.plugin_" + "one")',
    "ImportByFile": (
        'spec = importlib.util.spec_from_file_location("x", HERE / "plugin_two.py")\n'
        "spec.loader.exec_module(importlib.util.module_from_spec(spec))"
    ),
    "Executed": 'exec((HERE / "script.py.txt").read_text())',
    "CpuCount": "os.cpu_count()",
    "CpuCountOfPool": "multiprocessing.cpu_count()",
    "Affinity": "os.sched_getaffinity(0)",
    "HostName": "socket.gethostname()",
    "Listing": "os.listdir(HERE / 'tables')",
    "Walk": "list(os.walk(HERE / 'tables'))",
    "Missing": 'try:\n    open(HERE / "override.txt")\nexcept OSError:\n    pass',
    "Program": 'subprocess.run(["/bin/true"])',
    "Shell": 'os.system("true")',
    "Network": "try:\n    socket.create_connection(('127.0.0.1', 9), timeout=1)\nexcept OSError:\n    pass",
    "Child": (
        'pid = os.fork()\nif pid == 0:\n    open(HERE / "words.txt").read()\n    os._exit(0)\nos.waitpid(pid, 0)'
    ),
    "HardLink": 'os.link(HERE / "words.txt", out / "words.txt")',
    "SymbolicLink": 'os.symlink(HERE / "words.txt", tempfile.mkdtemp() + "/w")',
    "Mapped": 'self.__dict__["m"] = __import__("ctypes").CDLL(str(HERE / "native.so"))',
    "AtImport": "import probe_package.tables",
    "AtImportAgain": "from probe_package.tables import ROWS",
    "Own": (
        'folder = tempfile.mkdtemp()\n(Path(folder) / "a").write_text("x")\n(Path(folder) / "a").read_text()\n'
        '(out / "b").write_text("x")\n(out / "b").read_text()\nos.rename(out / "b", out / "c")\nopen(out / "c").read()'
    ),
    "Relative": 'os.chdir(HERE)\nopen("words.txt").read()',
    "Exists": '(HERE / "override.txt").exists()',
    "IsDir": '(HERE / "overrides").is_dir()',
    "Status": 'os.stat(HERE / "words.txt").st_mode',
    "Access": 'os.access(HERE / "words.txt", os.W_OK)',
    "ReadLink": 'try:\n    os.readlink(HERE / "words.txt")\nexcept OSError:\n    pass',
    "StatusInChild": (
        'pid = os.fork()\nif pid == 0:\n    (HERE / "override.txt").exists()\n    os._exit(0)\nos.waitpid(pid, 0)'
    ),
    "FileSystem": 'os.statvfs(HERE / "words.txt").f_bsize',
    "Attribute": 'try:\n    os.getxattr(HERE / "words.txt", "user.x")\nexcept OSError:\n    pass',
    "Database": 'import sqlite3\nsqlite3.connect(f"file:{HERE}/words.txt?mode=ro", uri=True).close()',
    "ExclusiveOnly": 'os.close(os.open(HERE / "words.txt", os.O_RDWR | os.O_EXCL))',
    "ProcessLimit": "__import__('resource').prlimit(0, 7)",
    "User": "os.getuid()",
    "UserByName": "__import__('getpass').getuser()",
    "Groups": "os.getgroups()",
    "Umask": "os.umask(os.umask(0))",
    "Limit": "__import__('resource').getrlimit(7)",
    "Spawn": "each = multiprocessing.get_context('spawn').Process(target=print)\neach.start()\neach.join()",
    "Resolved": "(out.parent / 'x').resolve()\n(out / 'y').mkdir()\n(out / 'y').exists()\n(out.parent).is_dir()",
    "Appended": 'open(HERE / "words.txt", "r+").read()',
}
"""What each step does, by the name of its class."""
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
    indented = {name: "\n".join(f"        {line}" for line in body.splitlines()) for name, body in BODIES.items()}
    steps = "".join(STEP.format(name=name, body=body) for name, body in indented.items())
    (package / "step.py").write_text(HEAD + steps)
    (site / "probe_helper.py").write_text(
        "from pathlib import Path\n\n\ndef words():\n    return (Path(__file__).parent / 'helper.txt').read_text()\n"
    )
    (site / "helper.txt").write_text("help")
    return package
