"""The file beside a model that names its runtime."""

import pytest

from engine.errors import StepError
from engine.runtimes import choice


def test_what_is_written_is_read(tmp_path):
    choice.write(tmp_path, "openvino")
    assert choice.read(tmp_path) == "openvino"


@pytest.mark.parametrize("content", [None, "", "[]", "{}", "null"])
def test_a_model_without_a_readable_choice_is_an_error(tmp_path, content):
    if content is not None:
        (tmp_path / choice.FILE).write_text(content)
    with pytest.raises(StepError, match="nothing says which runtime was chosen") as caught:
        choice.read(tmp_path)
    assert str(tmp_path) in str(caught.value)
