"""The passport of a compiled model: it is compared before any native code is loaded, and names what differs."""

import pt2
import pytest

from engine.errors import StepError
from engine.runtimes import passport_file
from engine.runtimes.inductor import passport
from engine.runtimes.inductor.passport import AxisSizes


def differing(built, machine):
    with pytest.raises(StepError, match="is not for this machine") as caught:
        passport.refuse_elsewhere(built, machine)
    return [fact.partition(":")[0] for fact in caught.value.facts]


def test_a_model_is_loaded_where_it_was_compiled():
    passport.refuse_elsewhere(pt2.make(), passport.here(None))
    on_h100 = pt2.make(gpu=pt2.H100)
    passport.refuse_elsewhere(on_h100, on_h100.machine)


@pytest.mark.parametrize(
    ("field", "value"),
    [("torch", "2.12.0"), ("os", "Darwin"), ("arch", "aarch64"), ("sm", 80), ("cuda", "12.9"), ("driver", "590")],
)
def test_another_machine_is_refused_with_the_name_of_the_field(field, value):
    built = pt2.make(gpu=pt2.H100)
    assert differing(built, built.machine.model_copy(update={field: value})) == [field]


def test_a_model_for_a_gpu_is_refused_on_another_gpu_and_on_a_cpu():
    built = pt2.make(gpu=pt2.H100)
    assert differing(built, built.machine.model_copy(update={"gpu": "NVIDIA H200"})) == ["gpu"]
    assert differing(built, passport.here(None)) == ["sm", "cuda", "driver"]


def test_a_cpu_may_have_more_instructions_than_the_model_needs_but_not_fewer():
    built, here = pt2.make(), passport.here(None)
    passport.refuse_elsewhere(built, here.model_copy(update={"isa": (*here.isa, "amx_int8", "new")}))
    assert differing(built, here.model_copy(update={"isa": ()})) == ["isa"]


def test_a_missing_passport_and_a_file_of_another_size_are_errors(tmp_path):
    directory = pt2.write(tmp_path / "model")
    assert passport.load(directory) == passport.load(directory / passport.MODEL) == pt2.make()
    (directory / passport.MODEL).write_bytes(b"other")
    with pytest.raises(StepError, match=r"model\.pt2 is not the model that its passport is about"):
        passport.load(directory)
    (directory / passport_file.FILE).unlink()
    with pytest.raises(StepError, match=r"comes without its passport\.json"):
        passport.load(directory)


def test_shapes_outside_of_the_axes_do_not_fit_and_the_lines_name_the_sizes():
    built = pt2.make()
    shapes = dict.fromkeys(built.inputs, (8, 32))
    assert built.misfits(shapes) == []
    for wrong in ((9, 32), (8, 33), (8, 32, 1), (0, 4)):
        lines = built.misfits({**shapes, "input_ids": wrong})
        assert lines[0] == f"input_ids: {list(wrong)} instead of [batch, sequence]"
        assert "batch: 1 to 8" in lines
    assert built.misfits({**shapes, "input_ids": (7, 32)}), "two inputs have different sizes of one axis"


def test_an_axis_without_a_limit_says_so():
    assert str(AxisSizes(min=2)) == "2 or more"
    assert 10**6 in AxisSizes(min=2)
    assert 1 not in AxisSizes(min=2)
