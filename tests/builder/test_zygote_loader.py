"""The loader of workers: modules run their source, and what lies in the cache of bytecode changes only the time."""

import os
import traceback

import pytest

from engine.builder import zygote_loader
from engine.builder.zygote_loader import SourceLoader

TEXT = "def outer():\n    def inner():\n        return 1 / divisor\n    return inner()\n\n\ndivisor = 2\n"


@pytest.fixture
def load(tmp_path):
    """Load a text as a module, with the cache in the folder `cache`; return the names of the module."""

    def load(text=TEXT, name="module"):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        names = {}
        exec(SourceLoader(str(tmp_path / "cache"), name, str(path)).get_code(name), names)
        return names

    return load


def compiled(tmp_path):
    return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def compile_nothing(self, data, path):
    raise AssertionError(f"{path} is compiled again")


def test_a_source_is_compiled_once_and_an_edit_of_the_same_size_is_another_source(load, monkeypatch):
    assert load()["outer"]() == 0.5
    assert load(TEXT.replace("2", "4"))["outer"]() == 0.25
    monkeypatch.setattr(SourceLoader, "source_to_code", compile_nothing)
    assert load()["outer"]() == 0.5
    with pytest.raises(AssertionError, match="is compiled again"):
        load(TEXT.replace("2", "8"))


DAMAGES = {
    "torn": lambda raw, _: raw[: len(raw) // 2],
    "empty": lambda *_: b"",
    "a bit": lambda raw, _: raw[:-1] + bytes([raw[-1] ^ 1]),
    "of another source": lambda _, other: other,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_compiled_anew(load, tmp_path, damage):
    load(TEXT.replace("2", "4"))
    [other] = compiled(tmp_path)
    load()
    [file] = {*compiled(tmp_path)} - {other}
    whole = file.read_bytes()
    file.write_bytes(damage(whole, other.read_bytes()))
    assert load()["outer"]() == 0.5
    assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_changes_nothing(load, tmp_path):
    (tmp_path / "cache").write_text("a file, where the folder would be")
    assert load()["outer"]() == 0.5


def test_a_disk_that_is_full_leaves_no_part_of_a_file(load, tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    assert load()["outer"]() == 0.5
    assert compiled(tmp_path) == []


def test_a_traceback_names_the_file_of_the_module_though_another_one_had_the_same_source(load, tmp_path):
    text = TEXT.replace("2", "0")
    for name in ("first", "second"):
        with pytest.raises(ZeroDivisionError) as error:
            load(text, name)["outer"]()
        frames = [(each.filename, each.lineno) for each in traceback.extract_tb(error.tb)[1:]]
        assert frames == [(str(tmp_path / f"{name}.py"), 4), (str(tmp_path / f"{name}.py"), 3)]
    assert len(compiled(tmp_path)) == 1


def test_the_cache_keeps_a_limited_number_of_files(load, tmp_path, monkeypatch):
    monkeypatch.setattr(zygote_loader, "_MOST", 1)
    for number in range(300):
        load(f"number = {number}")
    assert 100 < len(compiled(tmp_path)) <= 256
    before = compiled(tmp_path)
    load("number = 299")  # the one that was written last is still there
    assert compiled(tmp_path) == before
