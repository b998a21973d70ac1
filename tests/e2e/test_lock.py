"""`recipe lock`, `build --locked` and `build --frozen` through the real command line, on a tiny model."""

import json
import os
import shutil
import sys
from pathlib import Path

import fake_hub
import fake_wheels
import lock_edits
import models
import pytest
import tiny_project
from fake_hub import FIRST, REPO, SECOND, FakeHub
from program import Program
from tiny_project import CHAIN, HEAVY, MARK, RECIPE, SAMPLES

from engine import api
from engine.errors import UsageError

ROOT = Path(__file__).parent.parent.parent
CHILD = RECIPE.replace("  max_abs: {at_most: 100}\n", "")
"""The recipe without what its parent says."""
CACHED = dict.fromkeys(CHAIN, "cached")


@pytest.fixture(scope="module")
def built(tiny_bert, tmp_path_factory):
    """A project that was built and locked; `project` copies it."""
    folder = tmp_path_factory.mktemp("locked") / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    shutil.copytree(tiny_bert, folder / "model")
    (folder / "samples.jsonl").write_text(SAMPLES)
    (folder / "other.jsonl").write_text(SAMPLES)
    (folder / "base.yaml").write_text("validate: {max_abs: {at_most: 100}}\n")
    (folder / "r.yaml").write_text("extends: base.yaml\n" + CHILD)
    program = Program(folder)
    program("lock", "r.yaml", expect=0)
    shutil.copy(folder / "r.lock", folder / "unbuilt.lock.kept")
    shutil.copytree(tiny_project.built() / "cache", folder / "cache", copy_function=shutil.copy2, dirs_exist_ok=True)
    assert program.states("r.yaml", "--locked") == CACHED
    program("lock", "r.yaml", expect=0)
    return folder


@pytest.fixture
def unchanged(built):
    """The project itself, up to date with its lock: for tests that leave it as it is."""
    program = Program(built)
    assert program.states("r.yaml", "--locked") == CACHED
    return program


@pytest.fixture
def project(built, tmp_path):
    """A copy of the project, store and all, in which `build --locked` was up to date a moment ago."""
    shutil.copytree(built, tmp_path / "copy", copy_function=shutil.copy2)
    program = Program(tmp_path / "copy")
    assert program.states("r.yaml", "--locked") == CACHED
    return program


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def recipe(old, new):
    return lambda folder, _: edit(folder / "r.yaml", old, new)


def lock(old, new):
    return lambda folder, _: lock_edits.edit(folder / "r.lock", old, new)


def locked_value(name):
    """Spoil the digest behind the first `name:` of the lock."""

    def spoil(folder, _):
        text = (folder / "r.lock").read_text()
        start = text.index(f"{name}: ") + len(name) + 2
        lock_edits.write(folder / "r.lock", text[:start] + "0" * 32 + text[start + 32 :])

    return spoil


def samples_with_size_and_time_kept(folder, _):
    path = folder / "samples.jsonl"
    before = path.stat()
    path.write_text(SAMPLES.replace("bad", "sad"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def weights(folder, _):
    shutil.rmtree(folder / "model")
    models.checkpoint(folder / "model", "bert", task="text-classification", seed=1)


def upgrade(tool):
    def install(folder, environment):
        info = fake_wheels.install(folder / "upgrade", tool, "99.0", {})
        inherited = environment.get("PYTHONPATH", "").split(os.pathsep)
        # In front of the installed ones only for whoever looks along the whole path.
        environment["PYTHONPATH"] = os.pathsep.join([str(info.parent), *filter(None, inherited)])

    return install


def own_code(folder, environment):
    """Copy the program into a project, build with the copy until nothing is left to do, and return its folder."""
    shutil.copytree(ROOT / "engine", folder / "src" / "engine")
    environment["PYTHONPATH"] = str(folder / "src")
    program = Program(folder)
    program.environment = environment
    assert program.states("r.yaml", "--locked") == CACHED
    return folder / "src" / "engine"


def code(file, old, new):
    return lambda folder, environment: edit(own_code(folder, environment) / file, old, new)


MUTATIONS = {
    "a shape": (recipe("sequence: 8", "sequence: 9"), "recipe.bench.shapes.0.axes.sequence of tiny: locked 8, here 9"),
    "a bound": (
        recipe("cosine: {at_least: 0.5}", "cosine: {at_least: 0.4}"),
        "recipe.validate.cosine.at_least of tiny: locked 0.5, here 0.4",
    ),
    "a bound of the parent": (
        lambda folder, _: edit(folder / "base.yaml", "100", "99"),
        "recipe.validate.max_abs.at_most of tiny: locked 100.0, here 99.0",
    ),
    "a rival": (
        recipe("[{runtime: onnxruntime}]", "[]"),
        "recipe.bench.against.0.runtime of tiny: locked onnxruntime, here the default",
    ),
    "a matrix": (
        recipe("precision: int8\n", "matrix: {precision: [int8, fp32]}\n"),
        "variant tiny-fp32: not locked, here",
    ),
    "a byte of a sample": (samples_with_size_and_time_kept, "samples.jsonl: locked "),
    "the weights": (weights, "model: locked "),
    "the model's settings": (
        lambda folder, _: (folder / "model" / "config.json").write_text(
            (folder / "model" / "config.json").read_text() + " "
        ),
        "model: locked ",
    ),
    "one tool": (upgrade("transformers"), "tools.transformers: locked "),
    "another tool": (upgrade("tritonclient"), "tools.tritonclient: locked "),
    "a step's code": (
        code("steps/quantize.py", "sizes = (precisions.size(fused)", "sizes = (1 * precisions.size(fused)"),
        "code of quantize: locked ",
    ),
    "shared code": (code("kit/triton/served/tokenizer.py", "self", "this"), "code of package: locked "),
    "data of the code": (code("kit/inputs/texts.txt", "\n", "!\n"), "code of reference: locked "),
    "a new step": (
        lambda folder, environment: (own_code(folder, environment) / "steps" / "mark.py").write_text(MARK),
        "job mark of tiny: not locked, here",
    ),
    "the lock's source": (locked_value("  model"), f"model: locked {'0' * 32}, here "),
    "the lock's tool": (lock("  onnx: 1.", "  onnx: 0."), "tools.onnx: locked 0."),
    "the lock's code": (locked_value("  export"), f"code of export: locked {'0' * 32}, here "),
    "the lock's key": (locked_value("        key"), f"key of fetch in tiny: locked {'0' * 32}, here "),
    "the lock's artifact": (locked_value("artifact"), f"artifact of fetch in tiny: locked {'0' * 32}, here "),
    "the lock's recipe": (
        lock("precision: int8", "precision: fp16"),
        "recipe.precision of tiny: locked fp16, here int8",
    ),
    "the lock's wiring": (
        lock("compiled: quantize", "compiled: fuse"),
        "needs.compiled of validate in tiny: locked fuse",
    ),
    "the lock edited": (
        lambda folder, _: edit(folder / "r.lock", "opset: 20", "opset: 21"),
        "the lock was edited, merged or cut off",
    ),
    "a conflict in the lock": (
        lambda folder, _: edit(folder / "r.lock", "tools:\n", "<<<<<<< HEAD\ntools:\n"),
        "r.lock:9:1: a merge conflict is not resolved",
    ),
    "the lock cut off": (
        lambda folder, _: edit(folder / "r.lock", "\n...\n", "\n"),
        "the lock was edited, merged or cut off",
    ),
    "the lock gone": (lambda folder, _: (folder / "r.lock").unlink(), "r.yaml has no lock"),
    "the model gone": (lambda folder, _: shutil.rmtree(folder / "model"), "names model, which is not there"),
}


BROKEN = ("r.lock:", "the lock was edited", "names model")


@pytest.mark.parametrize(("mutate", "message"), MUTATIONS.values(), ids=MUTATIONS)
@pytest.mark.sample(1)
def test_a_locked_build_names_whatever_differs_and_builds_nothing(project, mutate, message):
    mutate(project.folder, project.environment)
    before = sorted(path.name for path in (project.folder / "cache" / "records").iterdir())
    done = project("build", "r.yaml", "--locked", "--json", expect=2)
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("error: ") == 1
    assert message in done.stderr
    [refusal] = [json.loads(line) for line in done.stdout.splitlines()]
    assert (refusal["state"], refusal["exit"]) == ("failed", 2)
    assert refusal["error"]["what"] in done.stderr
    assert message in project("build", "r.yaml", "--locked", "--dry-run", expect=2).stderr
    assert sorted(path.name for path in (project.folder / "cache" / "records").iterdir()) == before
    if not message.startswith(BROKEN):
        assert "recipe lock r.yaml" in done.stderr
        project("lock", "r.yaml", expect=0)
        project("build", "r.yaml", "--locked", "--dry-run", expect=0)


def test_a_locked_build_names_the_override_that_the_lock_does_not_have(unchanged):
    done = unchanged("build", "r.yaml", "--locked", "--set", "bench.shapes.0.batch=2", expect=2)
    assert "recipe.bench.shapes.0.axes.batch of tiny: locked 1, here 2" in done.stderr
    assert "hint: leave --set out, or write its change into the recipe and run `recipe lock r.yaml`" in done.stderr


def test_python_locks_as_the_command_does_and_no_override(unchanged):
    [one] = api.lock(unchanged.folder / "r.yaml")
    assert not one.changed
    assert list(one.lock.variants["tiny"].jobs) == list(CHAIN)
    with pytest.raises(UsageError, match="as it is written: `set` cannot change it"):
        api.lock(unchanged.folder / "r.yaml", set={"precision": "fp32"})


def test_an_up_to_date_locked_build_imports_nothing_heavy(unchanged):
    assert not unchanged.imports("build", "r.yaml", "--locked") & HEAVY


@pytest.mark.parametrize(
    "change",
    [
        lambda _folder, _: None,
        recipe("name: tiny", "# a comment\nname: tiny"),
        recipe("name: tiny\nmodel: {source: model}\n", "model: {source: model}\nname: tiny\n"),
        recipe("samples: samples.jsonl", "samples:    'samples.jsonl'"),
        recipe("agreement: {at_least: 0.1}", "agreement: 0.1"),
        recipe("model: {source: model}", "model: {source: model, weights: safetensors}"),
        lambda folder, _: [os.utime(path) for path in folder.rglob("*")],
        lambda folder, _: (folder / "model" / "README.md").write_text("about"),
        code("steps/shape_infer.py", '"""', '"""Anew: '),
        code("steps/quantize.py", "\n\n", "\n\n# a remark\n"),
    ],
    ids=[
        "nothing",
        "comment",
        "order of fields",
        "layout",
        "shorthand",
        "a default",
        "touch",
        "readme",
        "docstring",
        "remark",
    ],
)
@pytest.mark.sample(1)
def test_what_does_not_matter_keeps_the_lock_valid_and_builds_nothing(project, change):
    change(project.folder, project.environment)
    for _ in range(2):
        assert project.states("r.yaml", "--locked") == CACHED
    assert "up to date" in project("lock", "r.yaml", expect=0).stdout


@pytest.mark.whole("test_a_locked_build_names_whatever_differs_and_builds_nothing")
def test_two_machines_of_one_kind_write_the_same_bytes(built, tmp_path):
    kinds = {"unbuilt": "unbuilt.lock.kept", "built": "r.lock"}
    for number, (kind, name) in enumerate(kinds.items()):
        folder = tmp_path / f"somewhere else {number}" / "deeper"
        ignored = shutil.ignore_patterns("r.lock", "build", *(["cache"] if kind == "unbuilt" else []))
        shutil.copytree(built, folder, copy_function=shutil.copy2, ignore=ignored)
        program = Program(folder)
        program.environment |= {
            "USER": "somebody", "LOGNAME": "somebody", "HOME": str(tmp_path), "LANG": "tr_TR.UTF-8", "LC_ALL": "C",
            "TZ": "Asia/Tokyo", "PYTHONHASHSEED": str(number + 1), "COLUMNS": "40",
        }  # fmt: skip
        (tmp_path / "cwd").mkdir(exist_ok=True)
        program.folder = tmp_path / "cwd"
        program("lock", str(folder / "r.yaml"), expect=0)
        assert (folder / "r.lock").read_bytes() == (built / name).read_bytes(), kind


def test_a_lock_says_nothing_of_the_place_the_user_or_the_time(built):
    text = (built / "r.lock").read_text()
    assert str(built) not in text
    assert not any(len(part) > 3 and part in text for part in built.parts if part != "project")
    assert sys.prefix not in text
    assert str(ROOT) not in text


def test_a_lock_has_the_keys_and_artifacts_of_the_build(unchanged):
    ended = {event["job"]: event for event in unchanged.events("r.yaml") if event["event"] == "end"}
    text = (unchanged.folder / "r.lock").read_text()
    for job, event in ended.items():
        assert f"key: {event['key']}\n" in text, job
        assert (f"artifact: {event['artifact']}\n" in text) == (job != "bench"), job


def test_a_working_directory_elsewhere_keeps_the_lock_valid(built):
    for _ in range(2):
        assert Program(built.parent).states("project/r.yaml", "--locked") == CACHED


def test_a_selection_is_compared_and_the_rest_is_not(project):
    assert set(project.states("r.yaml", "--locked", "--to", "quantize").values()) == {"cached"}
    edit(project.folder / "samples.jsonl", "bad", "sad")
    assert set(project.states("r.yaml", "--locked", "--to", "quantize").values()) == {"cached"}
    project("build", "r.yaml", "--locked", "--to", "validate", expect=2)
    same, other = ("--set", "precision=int8"), ("--set", "validate.cosine=0.4")
    assert set(project.states("r.yaml", "--locked", "--to", "fuse", *same).values()) == {"cached"}
    refused = project("build", "r.yaml", "--locked", "--to", "fuse", *other, expect=2).stderr
    assert "recipe.validate.cosine.at_least of tiny: locked 0.5, here 0.4" in refused


def test_a_lock_that_was_edited_after_an_up_to_date_build_is_noticed_and_so_is_its_mending(project):
    path = project.folder / "r.lock"
    text = path.read_text()
    path.write_text(text.replace("opset: 20", "opset: 21"))
    project("build", "r.yaml", "--locked", expect=2)
    path.write_text(text)
    assert project.states("r.yaml", "--locked") == CACHED
    path.unlink()
    project("build", "r.yaml", "--frozen", expect=2)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "words",
    [("--locked", "--frozen"), ("--locked", "--refresh"), ("--frozen", "--refresh"), ("--frozen", "--force", "export")],
    ids=" ".join,
)
def test_what_contradicts_itself_is_refused(unchanged, words):
    assert unchanged("build", "r.yaml", *words, expect=2).stderr.startswith("error: --")


def test_a_frozen_build_needs_no_sources(project):
    """Nor the tools and code of the lock: see tests/lockfile/test_locking.py."""
    shutil.rmtree(project.folder / "model")
    shutil.rmtree(project.folder / "build")
    (project.folder / "samples.jsonl").unlink()
    for _ in range(2):
        assert project.states("r.yaml", "--frozen") == CACHED
    assert (project.folder / "build" / "tiny" / "tiny" / "config.pbtxt").is_file()
    assert not project.imports("build", "r.yaml", "--frozen") & HEAVY
    assert "would build" not in project("build", "r.yaml", "--frozen", "--dry-run", expect=0).stdout
    project("build", "r.yaml", expect=2)


@pytest.mark.slow
def test_the_commit_of_a_revision_comes_from_the_lock_and_nobody_is_asked(empty, tmp_path):
    (empty.folder / "r.yaml").write_text(f"name: r\nmodel: {{source: 'hf:{REPO}'}}\n")
    repositories = {REPO: {FIRST: fake_hub.model(), SECOND: fake_hub.model(fill=1)}}
    with FakeHub(repositories=repositories) as hub:
        empty.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "*"}
        empty.environment.pop("HF_HUB_OFFLINE", None)
        empty("lock", "r.yaml", expect=0)
        text = (empty.folder / "r.lock").read_text()
        assert f"hf:{REPO}@main: '{FIRST}'" in text or f"hf:{REPO}@main: {FIRST}" in text.replace("'", "")
        hub.branches["main"] = SECOND
        shutil.rmtree(empty.folder / "cache")
        for words in ("--locked", "--frozen"):
            hub.requests.clear()
            [_, *ended, _] = empty.events("r.yaml", words, "--to", "fetch")
            assert [event["state"] for event in ended if event["event"] == "end"] == [
                "built" if words == "--locked" else "cached"
            ]
            assert not [request for request, _ in hub.requests if "/revision/main" in request]
        assert "up to date" not in empty("lock", "r.yaml", expect=0).stdout  # the artifact is known now
        assert SECOND not in (empty.folder / "r.lock").read_text()
        empty("lock", "r.yaml", "--refresh", expect=0)
        assert SECOND in (empty.folder / "r.lock").read_text()
        edit(empty.folder / "r.yaml", f"'hf:{REPO}'", f"'hf:{REPO}', revision: v1")
        hub.requests.clear()
        refused = empty("build", "r.yaml", "--locked", expect=2).stderr
        assert f"hf:{REPO}@v1: not locked, here not looked up" in refused
        assert hub.requests == []


@pytest.mark.whole("test_the_commit_of_a_revision_comes_from_the_lock_and_nobody_is_asked")
def test_a_locked_commit_does_not_become_what_an_ordinary_build_remembers(empty, tmp_path):
    (empty.folder / "r.yaml").write_text(f"name: r\nmodel: {{source: 'hf:{REPO}'}}\n")
    repositories = {REPO: {FIRST: fake_hub.model(), SECOND: fake_hub.model(fill=1)}}
    with FakeHub(repositories=repositories) as hub:
        empty.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "*"}
        empty("lock", "r.yaml", expect=0)
        hub.branches["main"] = SECOND
        empty("build", "r.yaml", "--to", "fetch", "--refresh", expect=0)
        empty("build", "r.yaml", "--to", "fetch", "--locked", expect=0)
        note = json.loads((empty.folder / "cache" / "resolutions" / "hub.json").read_text())
        assert note[f"hf:{REPO}@main"] == SECOND
