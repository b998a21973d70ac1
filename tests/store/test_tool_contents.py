"""Which code an installed tool has: proved by RECORD, or known by its content."""

import importlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from importlib import metadata
from types import SimpleNamespace

import fake_wheels
import pytest

from engine.builder.live_rows import LiveRows
from engine.store import tool_contents, user_cache
from engine.store.store import Store
from engine.store.tool_contents import content_of

FILES = {
    "toy/__init__.py": "from toy.core import run\n",
    "toy/core.py": "def run():\n    return 1\n",
    "toy/words.txt": "a\nb\n",
    "toy/_fast.cpython-311-x86_64-linux-gnu.so": "machine code",
    "toy/core.pyi": "def run() -> int: ...\n",
    "toy/include/toy.h": "int run();\n",
    "toy/tests/test_core.py": "assert True\n",
    "shared/toy/__init__.py": "",
    "toy_script.py": "print('toy')\n",
}


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """A user whose cache folder is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of the import path with the distribution `toy` and another distribution in a shared folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    fake_wheels.install(folder, "toy", "1.0", FILES)
    fake_wheels.install(folder, "other", "1.0", {"shared/other/__init__.py": "", "toy/plugin_of_other.py": ""})
    monkeypatch.syspath_prepend(folder)
    yield folder
    importlib.invalidate_caches()


def looked_up(tmp_path, name="toy", *, afresh=False):
    """Return the value of the row of a tool as a new build sees it, and why it is not the version alone."""
    importlib.invalidate_caches()
    live = LiveRows(Store(tmp_path / "cache", afresh=afresh))
    return live.tools([name])[name], live.reasons.get(name, "")


@pytest.fixture
def value(tmp_path):
    return lambda name="toy", **how: looked_up(tmp_path, name, **how)[0]


@pytest.fixture
def reason(tmp_path):
    return lambda name="toy": looked_up(tmp_path, name)[1]


def content():
    return content_of(metadata.distribution("toy"), user_cache.notes())


def edit_in_place(path, text):
    """Change a file's content, and leave its size and its modification time as they were."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(text.encode().ljust(before.st_size)[: before.st_size])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


@pytest.mark.parametrize(
    "change",
    [
        lambda site: edit_in_place(site / "toy/core.py", "def run():\n    return 2\n"),
        lambda site: (site / "toy/core.py").write_text("def run():\n    return 2\n"),
        lambda site: (site / "toy/words.txt").write_text("other words"),
        lambda site: (site / "toy/_fast.cpython-311-x86_64-linux-gnu.so").write_text("other machine code"),
        lambda site: (site / "toy/core.py").unlink(),
        lambda site: (site / "toy_script.py").write_text("print('other')"),
        lambda site: (site / "toy/extra.py").write_text("x = 1"),
        lambda site: (site / "toy/core.so").write_text("stands before core.py"),
        lambda site: (site / "toy/only_compiled.pyc").write_bytes(b"a module without a source"),
        lambda site: (site / "toy/core").mkdir() or (site / "toy/core/__init__.py").write_text("def run(): return 3"),
        lambda site: (site / "shared/toy/late.py").write_text("x = 1"),
        lambda site: fake_wheels.install(site, "toy", "1.0", FILES, direct_url={"url": "x", "vcs_info": {}}),
        lambda site: (site / "toy-1.0.dist-info/RECORD").unlink(),
        lambda site: (site / "toy-1.0.dist-info/RECORD").write_text("toy/__init__.py,,\n"),
        lambda site: (site / "toy-1.0.dist-info/RECORD").write_text(""),
        lambda site: fake_wheels.install(site, "toy", "1.0", {}),
        lambda site: (site / "toy.py").write_text("x = 1") and shutil.rmtree(site / "toy"),
        lambda site: os.mkfifo(site / "toy/pipe.py"),
    ],
    ids=[
        "edited in place with the old time", "rewritten", "data", "machine code", "a missing file", "a single module",
        "an extra module", "an extra extension", "an extra compiled module", "a package beside a module",
        "an extra module in a shared folder", "a checkout of a version control system", "no RECORD",
        "a RECORD without checksums", "an empty RECORD", "a RECORD without modules", "a module in place of the package",
        "a pipe",
    ],
)  # fmt: skip
def test_code_that_the_version_does_not_promise_is_a_row_by_its_content(site, value, reason, change):
    assert (value(), reason()) == ("1.0", "")
    change(site)
    assert value().startswith("1.0 (content: "), reason()
    assert reason()
    assert value() == value()


@pytest.mark.parametrize(
    "change",
    [
        lambda site: shutil.rmtree(site / "toy/__pycache__"),
        lambda site: (site / "toy/__pycache__/core.cpython-312.pyc").write_bytes(b"compiled by another Python"),
        lambda site: (site / "toy/core.pyi").write_text("def run() -> str: ...\n"),
        lambda site: (site / "toy/include/toy.h").write_text("long run();\n"),
        lambda site: (site / "toy/tests/test_core.py").write_text("assert False\n"),
        lambda site: (site / "toy/README.md").write_text("read me"),
        lambda site: (site / "toy/cache.bin").write_bytes(b"a cache that the tool wrote"),
        lambda site: (site / "toy-1.0.dist-info/INSTALLER").write_text("uv\n"),
        lambda site: (site / "toy-1.0.dist-info/REQUESTED").write_text(""),
        lambda site: os.utime(site / "toy/core.py"),
        lambda site: fake_wheels.install(site, "toy", "1.0", FILES),
        lambda site: fake_wheels.install(site, "unrelated", "3", {"unrelated/__init__.py": "", "shared/more.py": ""}),
        lambda site: shutil.copytree(site / "toy", site / "toy2") and os.rename(site / "toy2", site / "renamed"),
        lambda site: (site / "toy-1.0.dist-info").rename(site / "Toy-1.0.dist-info"),
    ],
    ids=[
        "compiled copies removed", "another compiled copy", "a stub", "a header", "a test", "a document", "a cache",
        "another installer", "a mark of the installer", "a new time", "installed again", "another distribution",
        "a copy under another name", "another case of the name",
    ],
)  # fmt: skip
def test_what_changes_no_code_changes_no_row(site, value, reason, change):
    assert value() == "1.0"
    change(site)
    assert value() == "1.0", reason()


def test_equal_code_has_an_equal_row_at_every_place(tmp_path, site, value, reason, monkeypatch):
    """The same patch in another folder, and the same code as a checkout on the import path."""
    (site / "toy/core.py").write_text("def run():\n    return 2\n")
    assert reason() == "not as it was installed: toy/core.py"
    (site / "toy/words.txt").unlink()
    assert reason() == "not as it was installed: toy/core.py and 1 more"
    patched = value()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(site, elsewhere)
    monkeypatch.syspath_prepend(elsewhere)
    assert value() == patched
    assert patched != "1.0"
    (elsewhere / "toy/core.py").write_text("def run():\n    return 3\n")
    assert value() not in (patched, "1.0")


def test_a_package_in_an_earlier_folder_counts_in_place_of_the_installed_one(
    tmp_path, site, value, reason, monkeypatch
):
    assert value() == "1.0"
    checkout = tmp_path / "checkout"
    (checkout / "toy").mkdir(parents=True)
    (checkout / "toy/__init__.py").write_text("def run():\n    return 5\n")
    monkeypatch.syspath_prepend(checkout)
    shadowed = value()
    assert shadowed.startswith("1.0 (content: ")
    assert str(checkout) in reason()
    assert str(checkout) not in shadowed
    edit_in_place(checkout / "toy/__init__.py", "def run():\n    return 6\n")
    assert value() not in (shadowed, "1.0")


def test_an_equal_copy_in_an_earlier_folder_is_the_installed_tool(tmp_path, site, value, monkeypatch):
    copy = tmp_path / "copy"
    shutil.copytree(site / "toy", copy / "toy", ignore=shutil.ignore_patterns("plugin_of_other.py"))
    monkeypatch.syspath_prepend(copy)
    assert value() == "1.0"


@pytest.mark.parametrize("way", ["a path file", "a finder"])
def test_an_editable_tool_is_known_by_the_content_of_its_checkout(site, value, reason, monkeypatch, way):
    tmp_path = site.parent
    checkout = tmp_path / "checkout" / "src"
    (checkout / "draft").mkdir(parents=True)
    (checkout / "draft/__init__.py").write_text("x = 1\n")
    link = {"a path file": "_draft.pth", "a finder": "__editable___draft_1_0_finder.py"}[way]
    text = {"a path file": str(checkout), "a finder": f"MAPPING = {{'draft': {str(checkout / 'draft')!r}}}\n"}[way]
    url = {"url": f"file://{checkout}", "dir_info": {"editable": True}}
    fake_wheels.install(site, "my-draft", "1.0", {link: text}, direct_url=url)
    monkeypatch.syspath_prepend(checkout)
    first = value("my-draft")
    assert first.startswith("1.0 (content: ")
    assert reason("my-draft") == "an editable installation"
    edit_in_place(checkout / "draft/__init__.py", "x = 2\n")
    second = value("my-draft")
    (checkout / "draft/more.py").write_text("")
    assert len({first, second, value("my-draft")}) == 3


def test_of_two_descriptions_the_one_whose_files_exist_counts(site, value):
    old = fake_wheels.install(site, "toy", "0.9", {**FILES, "toy/core.py": "an older one, of another size"})
    fake_wheels.install(site, "toy", "1.0", FILES)
    assert old.is_dir()
    assert value() == "1.0"
    fake_wheels.install(site, "only-data", "7", {})
    assert value("only-data") == "7", "it has no packages"


def test_a_tool_is_read_once_and_then_known_by_stat_rows(site, tmp_path, monkeypatch):
    before = content()
    assert before.watched
    monkeypatch.setattr(tool_contents, "_checksum", None)
    assert content() == before
    shutil.rmtree(site / "toy/__pycache__")  # the folder has another row, the modules have not
    assert content().other == ""
    (site / "toy/core.py").write_text("x = 1")
    with pytest.raises(TypeError):
        content()


def test_a_folder_of_the_user_that_cannot_be_written_to_is_left_alone(site, tmp_path):
    assert site.is_dir()
    (tmp_path / "user").write_text("a file")
    assert content().watched


def test_the_notes_of_the_user_stay_few(tmp_path, monkeypatch):
    monkeypatch.setattr(user_cache, "MOST_NOTES", 5)
    notes = user_cache.notes()
    for number in range(8):
        notes.keep("tools", str(number), {"number": number})
    assert len(list((tmp_path / "user/recipe/tools").iterdir())) == 5
    assert notes.get("tools", "7")


def test_a_hard_link_or_a_compiled_module_is_no_change_of_a_tool_during_a_job(site, tmp_path):
    toy = content()
    os.link(site / "toy/core.py", tmp_path / "of another installation")
    (site / "toy/__pycache__/new.cpython-311.pyc").write_text("")
    assert toy.changed_file() is None
    os.link(site / "toy/core.py", tmp_path / "of a third installation")
    assert toy.changed_file() is None
    (site / "toy/shadow.py").write_text("")
    assert toy.changed_file() == site / "toy/shadow.py"


@pytest.mark.parametrize("keep_time", [False, True])
def test_an_edit_of_a_tool_during_a_job_is_a_change(site, tmp_path, keep_time):
    toy, path = content(), site / "toy/core.py"
    status = path.stat()
    path.write_bytes(bytes(reversed(path.read_bytes())) if keep_time else path.read_bytes())
    if keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert toy.changed_file() == path


def test_a_paranoid_build_reads_a_tool_whose_stat_rows_say_that_nothing_changed(site, value, monkeypatch):
    assert value() == "1.0"
    monkeypatch.setattr(tool_contents, "_digest_of", lambda _: "as ever")
    value(afresh=True)
    (site / "toy/core.py").write_text("x = 1")
    assert value() == "1.0"
    assert value(afresh=True) != "1.0"


@pytest.mark.usefixtures("site")
def test_after_another_mount_of_the_file_system_a_tool_is_read_again(value, monkeypatch):
    value()
    monkeypatch.setattr(tool_contents, "mounted", lambda _: "another mount")
    monkeypatch.setattr(tool_contents, "_checksum", None)
    with pytest.raises(TypeError):
        value()


def test_a_damaged_note_is_a_missing_note(site, value, tmp_path):
    (site / "toy/core.py").write_text("x = 1")
    before = value()
    [note] = (tmp_path / "user/recipe/tools").iterdir()
    for raw in (b"", b"{}", note.read_bytes()[:-20]):
        note.write_bytes(raw)
        assert value() == before


def test_a_tool_that_changes_after_it_was_read_is_named(site, tmp_path):
    live = LiveRows(Store(tmp_path / "cache"))
    live.tools(["toy"])
    job = SimpleNamespace(traits=SimpleNamespace(tools=("toy", "absent")))
    assert live.changed_tool(job) is None
    time.sleep(0.03)
    edit_in_place(site / "toy/core.py", "def run():\n    return 2\n")
    assert live.changed_tool(job) == site / "toy/core.py"


def test_one_row_holds_for_the_wheels_of_every_python(tmp_path, value, monkeypatch):
    """The wheel for another minor version has other names and bytes of its machine code, and the same version."""
    values = set()
    for tag in ("311", "312", "313", "314"):
        site = tmp_path / f"python3.{tag[1:]}" / "site-packages"
        site.mkdir(parents=True)
        code = f"toy/_fast.cpython-{tag}-x86_64-linux-gnu.so"
        fake_wheels.install(site, "toy", "1.0", {"toy/__init__.py": "", code: f"machine code of {tag}"})
        with monkeypatch.context() as patch:
            patch.syspath_prepend(site)
            values.add(value())
    assert values == {"1.0"}


@pytest.mark.whole("test_code_that_the_version_does_not_promise_is_a_row_by_its_content")
def test_installing_a_wheel_again_changes_no_row_and_a_local_file_does(tmp_path, site, value, reason):
    """Real pip: from an index of wheels, again by force, and at last from the file itself."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    wheel = wheels / "real_toy-2.0-py3-none-any.whl"
    lines = {
        "real_toy/__init__.py": "x = 1\n",
        "real_toy-2.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    }
    lines["real_toy-2.0.dist-info/METADATA"] = "Metadata-Version: 2.1\nName: real-toy\nVersion: 2.0\n"
    lines["real_toy-2.0.dist-info/RECORD"] = "".join(
        f"{name},{fake_wheels.checksum(text.encode())},{len(text)}\n" for name, text in lines.items()
    )
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in lines.items():
            archive.writestr(name, text)

    def pip(*words):
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--upgrade", "--target"]
        subprocess.run([*command, str(site), *words], check=True, capture_output=True)

    pip("--find-links", str(wheels), "real-toy==2.0")
    assert value("real-toy") == "2.0"
    pip("--find-links", str(wheels), "--force-reinstall", "real-toy==2.0")
    assert value("real-toy") == "2.0"
    pip(str(wheel))
    assert value("real-toy").startswith("2.0 (content: ")
    assert reason("real-toy") == "installed from a URL or a local file"
