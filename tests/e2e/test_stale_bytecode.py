"""Bytecode that Python believes although its source has changed: what a build files is of the source in the key."""

import json
import os
import py_compile
import shutil
from pathlib import Path

import graphs
import onnx
import pytest
from program import Program

ENGINE = Path(__file__).parents[2] / "engine"
PLUGIN = '''
"""Writes a word of each module that it reaches."""
import importlib.util
import json
import os
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import ClassVar

import word_tool
from engine.kit import word as engine_word
from engine.step import Step
from word_steps import helper, late

WORD = "one"


class Words(Step):
    """Writes a word of each module that it reaches."""

    makes: ClassVar[str] = "words"
    after: ClassVar[str] = "shape-infer"
    tools: ClassVar[tuple[str, ...]] = ("word_tool",)

    def run(self, out: Path, *, model: Path):
        (out / "model.onnx").write_bytes((model / "model.onnx").read_bytes())
        spec = importlib.util.spec_from_file_location("by_path", helper.__file__)
        by_path = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(by_path)
        words = [sys.executable, "-c", "from word_steps import helper; print(helper.WORD)"]
        path = os.pathsep.join(sys.path)
        child = subprocess.run(words, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True)
        with get_context("spawn").Pool(1) as pool:
            spawned = pool.apply(late.word)
        every = {
            "plugin": WORD, "helper": helper.WORD, "tool": word_tool.WORD, "engine": engine_word.WORD,
            "helper, loaded by its path": by_path.WORD, "helper, in a program": child.stdout.strip(),
            "helper, in a spawned process": spawned,
        }
        (out / "words.json").write_text(json.dumps(every))
'''
MODULES = {
    "word_steps/plugin.py": PLUGIN,
    "word_steps/helper.py": 'WORD = "one"\n',
    "word_steps/late.py": "from word_steps import helper\n\n\ndef word():\n    return helper.WORD\n",
    "word_tool.py": 'WORD = "one"\n',
    "engine/kit/word.py": 'WORD = "one"\n',
}
EDITED = [name for name, text in MODULES.items() if '"one"' in text]
PLACES = (
    "plugin", "helper", "tool", "engine",
    "helper, loaded by its path", "helper, in a program", "helper, in a spawned process",
)  # fmt: skip


def edit_in_the_same_second(module):
    py_compile.compile(str(module), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    before = module.stat()
    module.write_text(module.read_text().replace('"one"', '"two"'))
    os.utime(module, ns=(before.st_mtime_ns, before.st_mtime_ns + 1))
    assert module.stat().st_size == before.st_size


def edit_under_bytecode_that_is_not_checked(module):
    py_compile.compile(str(module), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    module.write_text(module.read_text().replace('"one"', '"two"'))


@pytest.fixture(
    scope="module",
    params=[edit_in_the_same_second, edit_under_bytecode_that_is_not_checked],
    ids=["the same second", "bytecode that is not checked"],
)
def words(request, tmp_path_factory):
    """What the step wrote in a build before the edit of all modules, and of one after it."""
    folder = tmp_path_factory.mktemp("stale") / "project"
    site = folder / "site"
    shutil.copytree(ENGINE, site / "engine", copy_function=shutil.copy2)  # with the times that bytecode files name
    for name, text in MODULES.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text)
    for name in ("word-steps", "word-tool"):
        info = site / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (site / "word_tool-1.0.dist-info" / "RECORD").write_text("word_tool.py,,\nword_tool-1.0.dist-info/METADATA,,\n")
    (site / "word_steps-1.0.dist-info" / "entry_points.txt").write_text(
        "[recipe.steps]\nwords = word_steps.plugin:Words\n"
    )
    (folder / "pyproject.toml").write_text("")
    onnx.save(graphs.layers(), folder / "net.onnx")
    (folder / "r.yaml").write_text(
        "name: m\nmodel: {source: net.onnx}\nsteps: {words: {}}\nprofiles: [{batch: [1, 1, 4]}]\n"
    )
    program = Program(folder)
    program.environment["PYTHONPATH"] = str(site)
    before = _words(program)
    for name in EDITED:
        request.param(site / name)
    return before, _words(program)


def _words(program):
    program.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as users have it
    [end] = [e for e in program.events("r.yaml", "--to", "words") if e["event"] == "end" and e["job"] == "words"]
    assert end["state"] == "built"
    return json.loads((Path(end["path"]) / "words.json").read_text())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.whole("tests/builder/test_zygote_loader.py loads a source by its content")
def test_a_worker_runs_the_source_that_its_key_has(words, place):
    before, after = words
    assert before[place] == "one"
    assert after[place] == "two"
