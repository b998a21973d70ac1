"""`recipe show ENGINE`: what built a TensorRT engine."""

import json

import passports
import pytest
from program import Program

from engine import commands
from engine.errors import StepError
from engine.runtimes.tensorrt import passport
from engine.runtimes.tensorrt.prepared_graph import EngineTensor, Extents


@pytest.fixture
def engine(tmp_path):
    folder = tmp_path / "minilm" / "1"
    folder.mkdir(parents=True)
    with (folder / "model.plan").open("wb") as plan:
        plan.truncate(52_000_000)
    tensor = EngineTensor(dtype="int64", shape=("batch", "sequence"))
    ends = Extents(min=(1, 1), opt=(1, 16), max=(1, 128))
    passport.save(folder, passports.make(
        options={"compatibility": "none", "optimization_level": 5, "refit": False}, inputs={"input_ids": tensor},
        profiles=({"input_ids": ends},), key="4d2", bytes=52_000_000,
        precision=passport.Precision(asked="fp16", network={"fp16": 9}, engine={"fp16": 7, "fp32": 1}),
    ))  # fmt: skip
    return folder


def test_an_engine_tells_what_built_it(engine, tmp_path):
    shown = Program(tmp_path)("show", str(engine), expect=0).stdout
    for words in ("TensorRT 10.13.0.35, 52.0 MB", "Tesla T4 (sm_75)", "Tesla T4 only", "fp16 asked for", "9 fp16",
                  "7 fp16, 1 fp32", "optimization_level: 5", "1x1 / 1x16 / 1x128", "input_ids int64 batch x sequence",
                  "runtime 12.9, driver 580.65.06", "4d2"):  # fmt: skip
        assert words in shown, words
    assert "refit" not in shown
    [shown] = json.loads(Program(tmp_path)("show", "--json", str(engine / "model.plan"), expect=0).stdout)
    assert shown.pop("engine") == str(engine / "model.plan")
    assert passport.Passport.model_validate(shown) == passport.load(engine)


def test_an_engine_without_a_passport_and_one_beside_a_recipe_are_clear_errors(engine, tmp_path):
    plan = str(engine / "model.plan")
    assert "cannot show recipes and engines" in Program(tmp_path)("show", "recipe.yaml", plan, expect=2).stderr
    (engine / passport.FILE).unlink()
    assert "without its passport.json" in Program(tmp_path)("show", plan, expect=1).stderr


def test_a_file_that_is_not_the_engine_of_its_passport_is_told_apart(engine, tmp_path):
    (engine / "model.plan").write_bytes(b"half of it")
    shown = Program(tmp_path)("show", str(engine / "model.plan"), expect=1).stderr
    assert "is not the engine that its passport is about" in shown
    assert "the passport says 52000000 bytes, the file has 10" in shown
    (engine / "model.plan").unlink()
    assert "there is no engine at" in Program(tmp_path)("show", str(engine), expect=1).stderr


@pytest.mark.parametrize(
    ("field", "value"), [("bytes", -1), ("bytes", 10**400), ("gpu", []), ("sms", []), ("options", "none")]
)
def test_a_passport_that_says_what_cannot_be_is_none(engine, field, value):
    path = engine / "passport.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    arguments = commands.parse(["show", str(engine)])
    with pytest.raises(StepError, match="is no passport of a TensorRT engine") as refused:
        arguments.run(arguments)
    assert "pydantic" not in str(refused.value)


def test_what_a_passport_says_cannot_draw_on_the_terminal(engine, tmp_path):
    path = engine / "passport.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "gpu": ["\x1b[31mred\nforged line"]}))
    shown = Program(tmp_path)("show", str(engine), expect=0).stdout
    assert "\x1b" not in shown
    assert "?[31mred?forged line" in shown
