import passports
import pytest

from engine.errors import StepError
from engine.runtimes.tensorrt import passport
from engine.runtimes.tensorrt.prepared_graph import EngineTensor, Extents


def test_only_a_version_compatible_engine_has_libraries_inside():
    compatible = passports.make(options={"version_compatible": True, "plugins": ["a.so"]})
    assert (compatible.holds_code, compatible.plugins) == (True, ())
    ordinary = passports.make(options={"version_compatible": False, "plugins": ["a.so"]})
    assert (ordinary.holds_code, ordinary.plugins) == (False, ("a.so",))


def test_a_passport_is_read_as_it_was_written(tmp_path):
    engine_passport = passports.make(options={"memory_pool": {"workspace": 1}, "plugins": ["a.so"]}, profiles=(
        {"x": Extents(min=(1, 4), opt=(2, 4), max=(8, 4))},), inputs={
        "x": EngineTensor(dtype="float32", shape=("batch", 4))})  # fmt: skip
    passport.save(tmp_path, engine_passport)
    assert passport.load(tmp_path) == passport.load(tmp_path / "model.plan") == engine_passport


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 2}'])
def test_what_is_no_passport_is_refused(text, tmp_path):
    (tmp_path / passport.FILE).write_text(text)
    with pytest.raises(StepError, match="is no passport"):
        passport.load(tmp_path)


def test_an_engine_without_its_passport_is_refused(tmp_path):
    with pytest.raises(StepError, match=r"without its passport\.json"):
        passport.load(tmp_path / "model.plan")
