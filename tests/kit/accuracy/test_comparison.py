import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.accuracy import agreement, comparison, outputs
from engine.kit.accuracy.agreement import Choices
from engine.kit.accuracy.outputs import Usual
from engine.kit.inputs.cases import Case


def case(outputs, *, mask=None, name="one", kind="sample", label=None):
    rows = len(next(iter(outputs.values())))
    inputs = {"x": np.zeros((rows, 3))} if mask is None else {"attention_mask": np.array(mask)}
    return Case(name, "a text", kind, inputs, {key: np.asarray(value) for key, value in outputs.items()}, label)


def distance(original, built, *, mask=None, how=None):
    tried = case(original, mask=mask)
    usual = outputs.usual([tried], pooling=how)
    return comparison.distance(tried, {name: np.asarray(v) for name, v in built.items()}, pooling=how, usual=usual)


def test_the_same_outputs_are_no_distance_apart():
    same = {"logits": np.array([[1.0, -2.0], [0.5, 3.0]])}
    measured = distance(same, same)
    assert (measured.cosine, measured.max_abs, measured.relative) == (pytest.approx(1), 0, 0)
    assert measured.choices == Choices(2)


def test_the_worst_row_of_a_batch_decides():
    measured = distance({"logits": [[3.0, 4.0], [3.0, 4.0]]}, {"logits": [[3.0, 4.0], [4.0, -3.0]]})
    assert measured.cosine == pytest.approx(0)
    assert measured.max_abs == 7
    assert measured.relative == pytest.approx(7 / 4)
    assert measured.choices == Choices(2, 1)


def test_what_stands_at_padded_positions_does_not_count():
    original = {"logits": np.ones((1, 3, 2))}
    built = {"logits": np.concatenate([np.ones((1, 2, 2)), np.full((1, 1, 2), 99.0)], axis=1)}
    assert distance(original, built, mask=[[1, 1, 0]]).max_abs == 0
    assert distance(original, built, mask=[[1, 1, 1]]).max_abs == 98


def test_a_span_is_chosen_among_real_positions_only():
    original = {"start_logits": np.array([[5.0, 1.0, 0.0]])}
    built = {"start_logits": np.array([[5.0, 1.0, 50.0]])}
    assert distance(original, built, mask=[[1, 1, 0]]).choices == Choices(1)
    assert distance(original, built, mask=[[1, 1, 1]]).choices == Choices(1, 1)


def test_a_near_tie_in_the_original_is_counted_as_one_and_a_clear_choice_is_not_however_wrong_the_model():
    near = distance({"logits": [[2.0, 1.95, -1.0]]}, {"logits": [[1.9, 2.0, -1.0]]})
    assert near.choices == Choices(1, 1, near_ties=1)
    clear = distance({"logits": [[2.0, 1.0, -1.0]]}, {"logits": [[-90.0, 90.0, 0.0]]})
    assert clear.choices == Choices(1, 1, near_ties=0)


def test_a_borderline_sample_has_an_error_and_no_direction():
    clear, borderline = case({"scores": [[3.0, -4.0]]}), case({"scores": [[0.1, -0.1]]})
    usual = outputs.usual([clear, clear, borderline], pooling=None)
    turned = {"scores": np.array([[-0.1, 0.1]])}
    measured = comparison.distance(borderline, turned, pooling=None, usual=usual)
    assert measured.cosine is None
    assert measured.max_abs == pytest.approx(0.2)
    assert measured.relative == pytest.approx(0.2 / 4)
    assert comparison.distance(clear, turned, pooling=None, usual=usual).cosine == pytest.approx(-0.99, abs=0.01)


def test_logits_that_mean_a_coin_toss_and_single_numbers_have_no_direction_but_other_small_outputs_have_one():
    small, turned = [[0.001, 0.002]], [[0.002, -0.001]]
    logits = distance({"logits": small}, {"logits": turned})
    assert (logits.cosine, logits.relative) == (None, pytest.approx(0.003))
    other = distance({"y": small}, {"y": turned})
    assert (other.cosine, other.relative) == (pytest.approx(0), pytest.approx(1.5))
    assert distance({"score": [[0.2]]}, {"score": [[-0.2]]}).cosine is None


def test_numbers_that_are_not_finite_are_no_distance_but_where_the_original_has_the_same():
    def between(original, built):
        return distance({"logits": [original]}, {"logits": [built]})

    assert between([1.0, 2.0], [1.0, np.nan]) is None
    assert between([1.0, 2.0], [1.0, np.inf]) is None
    assert between([1.0, -np.inf, 2.0], [1.0, 0.0, 2.0]) is None
    assert between([1.0, -np.inf, 2.0], [1.0, -np.inf, 2.0]).max_abs == 0


def test_integers_must_be_the_same():
    measured = distance({"labels": np.array([[1], [4]])}, {"labels": np.array([[1], [5]])})
    assert measured.choices == Choices(2, 1)


def test_an_embedding_is_compared_after_pooling():
    hidden = np.random.default_rng(0).standard_normal((1, 3, 8))
    turned = hidden.copy()
    turned[:, [0, 1]] = turned[:, [1, 0]]  # the mean of the two stays
    measured = distance({"last_hidden_state": hidden}, {"last_hidden_state": turned}, mask=[[1, 1, 0]], how="mean")
    assert measured.cosine == pytest.approx(1)
    assert measured.max_abs > 0.1
    assert measured.choices == Choices()


@pytest.mark.parametrize("how", ["mean", "cls", "max"])
def test_pooling_ignores_padding_on_either_side(how):
    states = np.random.default_rng(1).standard_normal((1, 3, 4))
    padding = np.full((1, 2, 4), 7.0)
    alone = outputs.pool(states, np.ones((1, 3)), how)
    right = outputs.pool(np.concatenate([states, padding], axis=1), np.array([[1, 1, 1, 0, 0]]), how)
    left = outputs.pool(np.concatenate([padding, states], axis=1), np.array([[0, 0, 1, 1, 1]]), how)
    assert np.allclose(alone, right)
    assert np.allclose(alone, left)
    assert np.linalg.norm(alone) == pytest.approx(1)


def texts(vectors, kind="sample"):
    return [case({"embedding": [vector]}, name=str(number), kind=kind) for number, vector in enumerate(vectors)]


def test_a_nearest_neighbour_that_changes_clearly_is_named():
    original = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    built = [{"embedding": np.array([vector])} for vector in ([1.0, 0.0], [0.1, 0.9], [0.0, 1.0])]
    assert agreement.neighbours(texts(original), built, "mean") == {
        "0": Choices(1),
        "1": Choices(1, 1),
        "2": Choices(1),
    }


def test_two_texts_have_no_choice_of_neighbours():
    original = [[1.0, 0.0], [0.0, 1.0]]
    built = [{"embedding": np.array([vector])} for vector in original]
    assert agreement.neighbours(texts(original), built, "mean") == {}


def test_a_missing_output_is_named():
    with pytest.raises(StepError, match="no output logits") as caught:
        distance({"logits": [[1.0, 2.0]]}, {"scores": [[1.0, 2.0]]})
    assert "it has: scores" in str(caught.value)


def test_an_output_of_another_shape_says_both_shapes():
    with pytest.raises(StepError, match="another shape") as caught:
        distance({"logits": [[1.0, 2.0]]}, {"logits": [[1.0, 2.0, 3.0]]})
    assert "[1, 3] instead of [1, 2]" in str(caught.value)


def test_what_the_cosine_leaves_out_is_a_sentence_with_its_reason():
    output = np.array([[3.0, 4.0], [0.001, 0.0], [1.0, 1.0]], np.float32)
    mask = np.array([[1, 1], [1, 1], [0, 0]])
    tried = Case("one", "", "tensors", {"attention_mask": mask}, {"y": output})
    usual = {"y": Usual(faint=0.1, largest=4.0, scale=4.0)}
    assert outputs.left_out([tried], usual=usual, pooling=None) == [
        "1 faint vector, whose direction a small error can turn far",
        "1 blank row, without a token",
    ]
    assert outputs.left_out([Case("one", "", "tensors", {}, {"y": output[:1]})], usual=usual, pooling=None) == []
