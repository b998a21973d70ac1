import pytest

from engine.errors import StepError
from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching


@pytest.mark.parametrize("joins", RowBatching)
def test_what_is_written_beside_a_model_is_read_again(joins, tmp_path):
    batching.write(tmp_path, joins)
    assert batching.read(tmp_path) is joins
    assert (joins.note() is None) == (joins is RowBatching.TOGETHER) == (list(tmp_path.iterdir()) == [])


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"rows": "some"}'])
def test_a_file_that_does_not_say_it_is_an_error(content, tmp_path):
    (tmp_path / "batching.json").write_text(content)
    with pytest.raises(StepError, match="which rows may be joined"):
        batching.read(tmp_path)
