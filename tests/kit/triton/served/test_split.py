"""The splitter as it is served: each row is asked alone, and the answers are joined."""

import numpy as np
import pytest

from engine.kit.triton.served import split


class Recorded(split.Work):
    """A splitter whose ensemble is a function of this process: a word and its place for each letter of a text."""

    def called(self, given):
        [[text]] = given["TEXT"].tolist()
        self.rows.append(text)
        words = np.array([[text[at : at + 1] for at in range(len(text))]], dtype=object)
        offsets = np.arange(2 * len(text)).reshape(1, len(text), 2)
        return {"words": words, "scores": np.ones((1, len(text)), np.float32), "offsets": offsets}


@pytest.fixture
def splitter(tmp_path):
    work = Recorded(tmp_path / "1", {"model": "m_text_row", "outputs": ["words", "scores", "offsets"]})
    work.rows = []
    return work


def test_rows_are_asked_one_by_one_and_shorter_answers_are_filled_up(splitter):
    answer = splitter({"TEXT": np.array([[b"ab"], [b"c"]], dtype=object)})
    assert splitter.rows == [b"ab", b"c"]
    assert answer["words"].tolist() == [[b"a", b"b"], [b"c", b""]]
    assert answer["scores"].tolist() == [[1, 1], [1, 0]]
    assert answer["offsets"].tolist() == [[[0, 1], [2, 3]], [[0, 1], [-1, -1]]]


@pytest.mark.parametrize("shapes", [(0, 0), (2, 1)])
def test_a_request_without_rows_or_of_unequal_rows_is_refused(splitter, shapes):
    first, second = shapes
    with pytest.raises(ValueError, match="at least one row"):
        splitter({"TEXT": np.zeros((first, 1), object), "IMAGE": np.zeros((second, 1), object)})
