"""Rivals that cannot run are named with the reason."""

import pytest

from engine.errors import StepError
from engine.kit.bench import rivals
from engine.kit.bench.interleaving import Contender
from engine.kit.bench.unmeasured import Unmeasured
from engine.runtimes.runner import Runner


def model(name, error=None):
    def prepare(_inputs):
        if error is not None:
            raise error
        return lambda: None

    return Runner(name, dict, prepare)


def missing():
    raise OSError("libcudart.so.12: cannot open shared object file")


def test_a_rival_whose_libraries_are_missing_is_left_out(capsys):
    contenders, unmeasured = rivals.loaded([("a", lambda: model("a")), ("b", missing)])
    assert [each.runtime for each in contenders] == ["a"]
    assert unmeasured == [Unmeasured(runtime="b", reason="libcudart.so.12: cannot open shared object file")]
    assert str(unmeasured[0]) == "b was not measured: libcudart.so.12: cannot open shared object file"
    assert str(unmeasured[0]) in capsys.readouterr().out


def test_an_error_of_the_program_itself_is_not_hidden():
    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        rivals.loaded([("a", broken)])


def test_a_rival_that_fails_on_the_inputs_is_left_out_and_the_built_model_is_not_tried():
    broken = StepError("no kernel", ["half"], "take it out")
    ours = Contender.in_process(model("ours", error=broken), ours=True)
    able, unmeasured = rivals.able((ours, Contender.in_process(model("a", error=broken))), {}, {"batch": 1})
    assert able == [ours]
    assert unmeasured == [Unmeasured(runtime="a", reason="no kernel; half; take it out", shape={"batch": 1})]
