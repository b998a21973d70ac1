"""What a worker records of the reads of a job: each way of reading, by a step of another package."""

import importlib.machinery
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
import reading_steps
from reading_steps import READS

import engine.step
from engine.builder.executors.local import LocalExecutor
from engine.builder.trace import reads
from engine.builder.trace.reads import Kind
from engine.builder.worker_task import WorkerTask
from engine.store import user_cache


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Run every step in one worker, one after the other, and return the reads of each by the step's name."""
    site = tmp_path_factory.mktemp("site")
    package = reading_steps.package_in(site)
    native = next(
        Path(sysconfig.get_path("stdlib"), "lib-dynload").glob(f"*{importlib.machinery.EXTENSION_SUFFIXES[0]}")
    )
    shutil.copy(native, package / "native.so")
    sys.path.insert(0, str(site))
    executor = LocalExecutor(1)
    items = {}
    try:
        for name in READS:
            folder = tmp_path_factory.mktemp(name)
            task = WorkerTask(
                f"probe_package.step:{name}", name, {}, {}, out=str(folder / "out"), log=str(folder / "log")
            )
            executor.submit(name, task, tools=(), variables=(), time_limit=60)
            end = time.monotonic() + 60
            outcomes = []
            while not outcomes and time.monotonic() < end:
                outcomes = executor.poll()
            [(_, outcome)] = outcomes
            assert outcome.error is None, (name, str(outcome.error), (folder / "log").read_text())
            files = sorted(folder.glob("reads*"))
            items[name] = (package, [read for file in files for read in reads.decode(file.read_bytes())])
    finally:
        executor.close()
        sys.path.remove(str(site))
    return items


BY_NATIVE_CODE = {"Mapped"}


@pytest.mark.parametrize("name", [name for name, (kind, *_) in READS.items() if kind is not None])
def test_a_read_is_recorded_with_the_line_of_the_step(recorded, name):
    package, items = recorded[name]
    kind, thing, body = READS[name]
    path = kind in (Kind.FILE, Kind.FOLDER, Kind.STATUS)
    full_name = str((package / thing).resolve()) if path else thing
    matches = [read for read in items if (read.kind, read.name) == (kind, full_name)]
    assert matches, [(read.kind.value, read.name) for read in items]
    if name in BY_NATIVE_CODE:
        return
    file, _, line = matches[0].at.rpartition(":")
    if name.startswith("AtImport"):  # the line that reads stands in the imported module
        assert file == str(package / "tables.py")
        return
    assert file == str(package / "step.py")
    text = (package / "step.py").read_text().splitlines()
    start = text.index(f"class {name}(Step):")
    assert start < int(line) <= start + 4 + body.count("\n") + 1


def test_what_a_job_writes_itself_is_no_read(recorded):
    _, items = recorded["Own"]
    files = [read.name for read in items if read.kind in (Kind.FILE, Kind.FOLDER) and read.at]
    assert {name for name in files if "/probe_package/" not in name} == {engine.step.__file__}  # the step imports it
    written = {"a", "b", "c"}
    assert not written & {Path(read.name).name for read in items}


def test_a_path_without_its_links_and_the_jobs_own_folder_are_no_read(recorded):
    _, items = recorded["Resolved"]
    assert [read for read in items if read.kind is Kind.STATUS] == []


def test_the_bytecode_of_modules_is_no_read(recorded):
    names = [read.name for _, items in recorded.values() for read in items]
    assert [name for name in names if name.startswith((f"{os.devnull}/", str(user_cache.folder())))] == []


def test_modules_that_an_earlier_job_imported_are_read_by_each_job_that_imports_them(recorded):
    package, items = recorded["AtImportAgain"]
    assert (Kind.FILE, str(package / "tables.py")) in {(read.kind, read.name) for read in items}
    for name, (_, others) in recorded.items():
        assert (Kind.FILE, str(package / "step.py")) in {(read.kind, read.name) for read in others}, name


FORKED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from engine.builder.trace import hook
hook.install()
open(sys.argv[1] + "/helper.txt").close()
with hook.importing():
    import probe_package.tables
for number in ("one", "two"):
    pid = os.fork()
    if pid == 0:
        os.mkdir(f"{sys.argv[2]}/{number}")
        with hook.recording("probe_package.step:X", f"{sys.argv[2]}/{number}", ()):
            if number == "two":
                import probe_helper
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


def test_what_a_zygote_imports_is_read_by_each_job_of_its_forks_and_nothing_else_that_it_does(tmp_path):
    site = tmp_path / "site"
    package = reading_steps.package_in(site)
    subprocess.run([sys.executable, "-c", FORKED, site, tmp_path], check=True)
    for number in ("one", "two"):
        items = reads.decode((tmp_path / number / "reads").read_bytes())
        [words] = [read for read in items if read.name == str(package / "words.txt")]
        assert words.at == f"{package / 'tables.py'}:2"
        assert str(package / "tables.py") in {read.name for read in items}
        names = {Path(read.name).name for read in items if read.name.startswith(f"{site}/")}
        assert names - {package.name} == {"__init__.py", "tables.py", "words.txt"} | (
            {"probe_helper.py"} if number == "two" else set()
        )


IMPORTS_AGAIN = """
import sys
sys.path.insert(0, sys.argv[1])
from engine.builder.trace import hook
hook.install()
with hook.importing():
    import probe_library
with hook.recording("probe_package:X", sys.argv[1], ()):
    import probe_other_library, probe_package
"""
READING_AGAIN = """
import pytest
import os
os.cpu_count()
os.getuid()
"""


def test_what_a_library_has_read_before_is_read_by_the_step_that_reads_it_too(tmp_path):
    (tmp_path / "probe_library.py").write_text("import pytest, os\nos.cpu_count()")
    (tmp_path / "probe_other_library.py").write_text("import os\nos.getuid()")
    (tmp_path / "probe_package.py").write_text(READING_AGAIN)
    subprocess.run([sys.executable, "-c", IMPORTS_AGAIN, tmp_path], check=True)
    items = reads.decode((tmp_path / "reads").read_bytes())
    for name, library, line in (
        ("pytest", "probe_library", 2),
        ("the number of CPUs", "probe_library", 4),
        ("the user", "probe_other_library", 5),
    ):
        sites = [(read.at, read.by) for read in items if read.name == name]
        assert sites[-1] == (f"{tmp_path / 'probe_package.py'}:{line}", "probe_package"), name
        assert ("", library) in sites
