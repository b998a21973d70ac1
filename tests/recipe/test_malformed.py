"""Wrong recipes: each recipe gets one error in plain words, with a place, within a short time."""

import functools
import os
import re
import time
from pathlib import Path

import pytest
from wrong_sense import MEANINGLESS
from wrong_text import BAD_YAML
from wrong_values import TYPOS, WRONG_VALUES

from engine import feasibility
from engine.errors import Exit, RecipeError
from engine.recipe.load import load

NAME = "name: tiny\n"
MINIMAL = NAME + "model: {source: model}\n"
WRONG_FILES = BAD_YAML | MEANINGLESS
_LONGEST = 1000
"""A malicious file may take this many times as long as an ordinary recipe. Without limits it would take for ever."""
_TRIES = 5


def check(path: Path, **options) -> None:
    for loaded in load(path, **options):
        feasibility.check(loaded)


@functools.cache
def usual() -> float:
    """Return the CPU seconds that an ordinary recipe takes: the shortest of several measurements."""
    ordinary = Path(__file__).parents[2] / "recipes" / "minilm_cpu.yaml"
    load(ordinary)  # the first call also imports modules
    taken = []
    for _ in range(5):
        start = time.process_time()
        load(ordinary)
        taken.append(time.process_time() - start)
    return min(taken)


def refused(path: Path, **options) -> RecipeError:
    for _ in range(_TRIES):
        start = time.process_time()
        with pytest.raises(RecipeError) as caught:
            check(path, **options)
        if time.process_time() - start < _LONGEST * usual():
            break
        usual.cache_clear()  # measure again: the machine may have become busy
    else:
        pytest.fail(f"{path} takes more than {_LONGEST} times an ordinary recipe")
    error, shown = caught.value, str(caught.value)
    assert error.exit is Exit.USAGE
    assert re.match(r"[^\n]+?:[1-9][0-9]*:[1-9][0-9]*: \S", shown), shown
    assert not re.search("pydantic|Traceback|Input should|valid dictionary|tag:yaml|object at 0x", shown), shown
    assert len(shown) < 3000
    assert all(c.isprintable() or c == "\n" for c in shown), ascii(shown)
    return error


def test_there_are_many_malformed_recipes():
    assert len(WRONG_VALUES) + len(TYPOS) + len(WRONG_FILES) >= 300


@pytest.mark.parametrize(("text", "path"), WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_a_wrong_value_is_refused_where_it_stands(project, text, path):
    error = refused(project.write(text))
    line = text.split("\n")[error.position.line - 1]
    key = next(segment for segment in reversed(path.split(".")) if not segment.isdecimal() and segment in line)
    assert line.index(key) < error.position.column, "the place is behind the field's name"


@pytest.mark.parametrize("text", TYPOS.values(), ids=TYPOS)
def test_a_typo_gets_a_suggestion_or_the_list(project, text):
    error = refused(project.write(text))
    assert re.match("unknown field `.*did you mean `|.*known here", f"{error.what}: {error.hint}")


@pytest.mark.parametrize("text", WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_malformed_recipe_is_refused_with_its_place(project, text):
    project.write("some notes, not a recipe", "notes.txt")
    refused(project.write(text))


@pytest.mark.parametrize("suffix", [".onnx", ".safetensors", ".plan", ".PBTXT"])
def test_a_file_of_a_model_is_no_recipe(project, suffix):
    path = project.root / f"m{suffix}"
    path.write_bytes(b"\x08\x08:")
    error = refused(path)
    assert "a recipe is a YAML file" in error.what
    assert "recipe new" in error.hint


def test_every_wrong_field_is_named_with_its_place_and_a_hint(project):
    error = refused(project.write("model: {source: model}\nprecision: float16\nbatch_size: 8\n"))
    assert "recipe.yaml:2:12: `precision`" in error.facts[0]
    assert "did you mean `fp16`?" in error.facts[0]
    assert "recipe.yaml:3:1: unknown field `batch_size`" in error.facts[1]


ODD = {
    "a directory": (os.mkdir, "is a directory"),
    "a pipe": (os.mkfifo, "no regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "no regular file"),
    "a loop of links": (lambda path: path.symlink_to("odd"), "too many levels"),
    "a dangling link": (lambda path: path.symlink_to("nowhere"), "no file"),
    "a binary file": (lambda path: path.write_bytes(b"\x89PNG\0"), "is a binary file"),
    "another encoding": (lambda path: path.write_text("name: tiny", "utf-16"), "not UTF-8"),
}


@pytest.mark.parametrize(("make", "what"), ODD.values(), ids=ODD)
def test_what_is_no_text_is_no_recipe_and_no_parent(project, make, what):
    make(project.root / "odd")
    assert what in refused(project.root / "odd").what
    refused(project.write("extends: odd\n"))


@pytest.mark.parametrize(("make", "what"), [(os.mkdir, "which is a directory"), (os.mkfifo, "no regular file")])
def test_what_is_no_file_is_no_file_of_samples_whatever_its_name(project, make, what):
    make(project.root / "odd.jsonl")
    assert what in refused(project.write(MINIMAL + "validate: {samples: odd.jsonl}")).what


def test_a_loop_of_links_is_no_model(project):
    (project.root / "loop").symlink_to("loop")
    refused(project.write(NAME + "model: {source: loop}"))


def test_a_file_that_fails_while_it_is_read_is_refused(project, monkeypatch):
    def denied(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    path = project.write(MINIMAL)
    monkeypatch.setattr(os, "open", denied)
    assert refused(path).what == "recipe.yaml cannot be read: permission denied"


@pytest.mark.parametrize("name", ["a\0b.yaml", "x" * 5000, "", "."])
def test_a_path_that_no_file_can_have_is_refused(project, name):
    with pytest.raises(RecipeError):
        load(project.root / name)


def test_a_file_that_grows_while_it_is_read_stays_within_the_limit(project, monkeypatch):
    path = project.write(b"#" * (2 << 20))
    real = os.fstat

    def small(handle):
        facts = list(real(handle))
        facts[6] = 10
        return os.stat_result(facts)

    monkeypatch.setattr(os, "fstat", small)
    assert "at most 1,048,576" in refused(path).what


def test_a_long_chain_of_parents_ends(project):
    for number in range(40):
        project.write(f"extends: p{number + 1}.yaml\n", f"p{number}.yaml")
    assert "more than 16 files" in refused(project.root / "p0.yaml").what


SETS = (
    "", "=", "precision", "=fp16", "precison=fp16", "target..device=T4", "model.source.x=1", "precision=[",
    "precision=fp61", "name=a/b", "bench.threads=yes", "bench.threads=0", "model=null", "profiles.0.batch=1",
    "precision=a\0b", "precision=\udcff", "precision=&a [*a]", "precision=!!python/name:os.system",
    "matrix.precision=[fp16]", "extends=base.yaml", "precision=# x", "precision=a\nname: b", "precision=--- a",
    "precision=*a", "model.source=/etc", "name=${x}",
)  # fmt: skip


@pytest.mark.parametrize("argument", SETS)
def test_a_malformed_set_is_refused(project, argument):
    assert refused(project.write(MINIMAL), set=[argument])


@pytest.mark.parametrize(
    "argument", ["", "=", "precision", "precison=fp16", "precision=fp16", "precision=[", "target.devic=T4"]
)
def test_a_malformed_only_is_refused(project, argument):
    assert refused(project.write(MINIMAL), only=[argument]).position.file == "--only"


NOT_UNICODE = b"\xed\xa0\x80.yaml".decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("name", ["we ird.yaml", "recipe", "наш.yaml", "--set", "a:b.yaml", NOT_UNICODE])
def test_odd_file_names_are_no_trouble(project, name):
    path = project.write("name: tiny\nmodel: {source: modle}\n", name)
    with pytest.raises(RecipeError) as caught:
        load(path)
    assert caught.value.position.file == str(path)
