"""Code and data of a step that its key does not cover: the job fails, or the key covers them and a change shows."""

import pytest

from engine.testing import install

STEP = """
from importlib.metadata import entry_points
from os import listdir, makedirs
from pathlib import Path
from runpy import run_path
from sys import modules
from typing import ClassVar
import engine
from engine.step import Step


class Stamp(Step):
    makes: ClassVar[str] = "stamped"
    after: ClassVar[str] = "fetch"
    tools: ClassVar[tuple[str, ...]] = ("ml_dtypes", "numpy", "onnx", "protobuf")

    def run(self, out: Path, *, model: Path):
        import onnx

        loaded = onnx.load(model / "model.onnx")
        loaded.doc_string = str({text})
        onnx.save(loaded, out / "model.onnx")
"""
RECIPE = "name: m\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\nsteps: {stamp: {}}\n"
BUILD = ("r.yaml", "--to", "stamp")
NAME = "'.'.join(['stamping', 'hidden'])"  # no literal
HERE = "Path(__file__)"
READ = f"{HERE}.with_name('text.bin').read_bytes()"
UNCOVERED = {
    "a lazy import of a computed name": f"__import__('importlib').import_module({NAME}).TEXT",
    "an import by the built-in function": f"__import__({NAME}).hidden.TEXT",
    "an entry point": "entry_points(group='another.group')['hid'].load().TEXT",
    "the __getattr__ of its package": "__import__('stamping').late",
    "the __getattr__ of this program": "engine.build and 'engine'",
    "a module that is loaded by its path": f"run_path(str({HERE}.with_name('hid' + 'den.py')))['TEXT']",
    "code that is run from a file": f"eval({HERE}.with_name('hid' + 'den.py').read_text().partition('= ')[2])",
    "a data file": READ,
    "a file in a folder that was there": f"[makedirs({HERE}.parent, exist_ok=True), {READ}]",
    "a file that is appended to": f"[{HERE}.with_name('text.bin').open('a').close(), {READ}]",
    "a folder": f"listdir({HERE}.parent)",
    "a data file of this program": "Path(engine.__file__).with_name('kit').joinpath('inputs/texts.txt').read_text()",
}
COVERED = {
    "an import inside a function": "(lambda: __import__('stamping.hidden').hidden.TEXT)()",
    "an import beside one that must fail": "(modules.update(nosuch=None), __import__('stamping.hidden').hidden.TEXT)",
    "an import by a literal name": "__import__('importlib').import_module('stamping.hidden').TEXT",
}


@pytest.fixture
def project(empty):
    import graphs
    import onnx

    site = empty.folder / "site"
    package = site / "stamping"
    install(site, "recipe.steps", "stamp", "stamping.step:Stamp")
    hid = site / "hid-1.0.dist-info"
    hid.mkdir()
    (hid / "METADATA").write_text("Metadata-Version: 2.1\nName: hid\nVersion: 1.0\n")
    (hid / "entry_points.txt").write_text("[another.group]\nhid = stamping.hidden\n")
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(
        "def __getattr__(name):\n    from importlib import import_module\n"
        f"    if name == 'late':\n        return import_module({NAME}).TEXT\n    raise AttributeError(name)\n"
    )
    (package / "hidden.py").write_text("TEXT = 'one'\n")
    (package / "text.bin").write_bytes(b"one")
    empty.environment["PYTHONPATH"] = str(site)
    onnx.save(graphs.layers(), empty.folder / "net.onnx")
    (empty.folder / "r.yaml").write_text(RECIPE)
    return empty


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in UNCOVERED.items()])
@pytest.mark.sample(1)
def test_what_the_key_does_not_cover_fails_the_job_and_leaves_no_record(project, text):
    (project.folder / "site" / "stamping" / "step.py").write_text(STEP.replace("{text}", text))
    done = project("build", *BUILD, expect=1)
    assert "the step 'stamp' uses code or data that its key does not cover" in done.stderr
    named = ("stamping/hidden.py", "stamping/text.bin", "uses stamping", "engine/api.py", "kit/inputs")
    assert any(name in done.stderr for name in named)
    records = [path.read_text() for path in (project.folder / "cache" / "records").iterdir()]
    assert records
    assert [record for record in records if "stamp" in record] == []


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in COVERED.items()])
@pytest.mark.sample(1)
def test_what_the_key_covers_is_built_and_a_change_builds_it_again(project, text):
    (project.folder / "site" / "stamping" / "step.py").write_text(STEP.replace("{text}", text))
    assert project.states(*BUILD)["stamp"] == "built"
    (project.folder / "site" / "stamping" / "hidden.py").write_text("TEXT = 'two'\n")
    assert [change["row"] for change in project.why("r.yaml")["stamp"]["changes"]] == ["code"]
    assert project.states(*BUILD)["stamp"] == "built"


def test_a_declaration_covers_a_module_and_a_file(project):
    step = STEP.replace("{text}", f"({UNCOVERED['an import by the built-in function']}, {UNCOVERED['a data file']})")
    step = step.replace("    makes:", "    data: ClassVar[tuple[str, ...]] = ('text.bin',)\n    makes:")
    step += "\n    def code_used(self):\n        return ('stamping.hidden',)\n"
    (project.folder / "site" / "stamping" / "step.py").write_text(step)
    assert project.states(*BUILD)["stamp"] == "built"
    (project.folder / "site" / "stamping" / "text.bin").write_bytes(b"two")
    assert project.states(*BUILD)["stamp"] == "built"


def test_a_module_that_takes_the_place_of_another_is_noticed_where_nothing_else_changed(project):
    package = project.folder / "site" / "stamping"
    (package / "step.py").write_text(STEP.replace("{text}", COVERED["an import inside a function"]))
    for says in ("built    stamp", "up to date"):
        assert says in project("build", *BUILD, expect=0).stderr
    (package / "hidden").mkdir()
    (package / "hidden" / "__init__.py").write_text("TEXT = 'two'\n")
    assert "built    stamp" in project("build", *BUILD, expect=0).stderr
