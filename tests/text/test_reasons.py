"""Errors of other libraries in plain words: no bare KeyError, no colours of a terminal, no advice for developers."""

import pytest
from torch.onnx._internal.exporter._errors import TorchExportError

from engine.text import reasons


def raised(kind, *arguments):
    with pytest.raises(kind) as caught:
        raise kind(*arguments)
    return caught.value


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("images"), "KeyError: there is no entry 'images'"),
        (KeyError(), "KeyError without a message"),
        (IndexError("list index out of range"), "IndexError: list index out of range"),
        (AssertionError(), "AssertionError without a message"),
        (NotImplementedError(), "NotImplementedError without a message"),
        (RuntimeError("\x1b[96mstep 1\x1b[0m failed\x07"), "step 1 failed"),
        (ValueError("a\nb"), "a b"),
    ],
)
def test_an_error_is_told_with_its_class_where_its_text_says_too_little(error, words):
    assert reasons.of_error(error) == words


def test_an_error_that_says_little_names_the_function_that_raised_it():
    first, last = reasons.facts(raised(KeyError, "x"))
    assert first == "KeyError: there is no entry 'x'"
    assert last.startswith("raised by raised in text/test_reasons.py, line ")
    assert reasons.first_line(raised(IndexError, "gone")).startswith("IndexError: gone (raised by raised in ")


def test_a_clear_error_is_quoted_without_the_folder_and_without_empty_lines():
    error = raised(RuntimeError, "\n/tmp/store/7/model.onnx is broken\n\n  at byte 7\n")
    assert reasons.facts(error, without="/tmp/store/7/") == ["model.onnx is broken", "at byte 7"]
    assert reasons.first_line(error, without="/tmp/store/7/") == "model.onnx is broken"


def test_nobody_is_told_to_pass_what_no_recipe_can_say():
    advice = "The repository x contains custom code.\nPlease pass the argument `trust_remote_code=True` to allow it."
    [fact] = reasons.facts(raised(ValueError, advice))
    assert fact == "the checkpoint has code of its own, and that code is never run (trust_remote_code)"
    assert reasons.of_error(raised(ValueError, advice)) == fact


def test_at_most_eight_lines_are_quoted():
    assert len(reasons.facts(raised(ValueError, "line\n" * 20))) == 8
    lines = reasons.facts(raised(TypeError, "line\n" * 20))
    assert (len(lines), lines[-1][:9]) == (8, "raised by")


def test_an_error_of_pytorchs_exporter_gives_the_reason_behind_its_advice():
    step = "\x1b[96mThis is step 1/3\x1b[0m of exporting the model to ONNX. Next steps:\n- ask"
    error = TorchExportError(f"Failed to export the model. {step}")
    error.__cause__ = raised(RuntimeError, "Could not guard on u0\nFor more information, run with TORCH_LOGS")
    assert reasons.facts(error) == ["Could not guard on u0"]
