"""The code that is served, without a server: each work's numbers, and what it makes of odd rows."""

import json

import numpy as np
import pytest
import torch

from engine.kit.triton.served.answer import Work as Answer
from engine.kit.triton.served.classify import Work as Classify
from engine.kit.triton.served.embed import Work as Embed
from engine.kit.triton.served.fill import Work as Fill
from engine.kit.triton.served.image import Work as Image
from engine.kit.triton.served.tag import Work as Tag

MASKS = {
    "right": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]],
    "left": [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]],
}


def test_scores_come_best_first_and_do_not_overflow(tmp_path):
    logits = np.array([[1000.0, -1000.0, 0.0]], dtype=np.float32)
    for score, wanted in {"softmax": [1, 0, 0], "sigmoid": [1, 0.5, 0], "number": [1000, 0, -1000]}.items():
        made = Classify(tmp_path, {"labels": ["a", "b", "c"], "scores": score})({"logits": logits})
        assert np.allclose(made["scores"], [wanted])
        assert made["labels"].tolist() == [[b"a", b"c", b"b"]]


@pytest.mark.parametrize("side", MASKS)
@pytest.mark.parametrize("mode", ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_padding_on_either_side_changes_no_pooled_vector(tmp_path, mode, side):
    states = np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32)
    mask = np.array(MASKS[side])
    work = Embed(tmp_path, {"modes": [mode], "normalise": False})
    together = work({"last_hidden_state": states, "attention_mask": mask})["sentence_embedding"]
    for row in range(2):
        own = states[row : row + 1, mask[row] == 1]
        seen = np.ones(own.shape[:2], dtype=np.int64)
        alone = work({"last_hidden_state": own, "attention_mask": seen})["sentence_embedding"]
        assert np.allclose(together[row], alone[0], atol=1e-6)
        tokens = torch.from_numpy(own[0])
        places = torch.arange(1, len(tokens) + 1)[:, None]
        wanted = {
            "cls": tokens[0],
            "max": tokens.max(0).values,
            "mean": tokens.mean(0),
            "mean_sqrt_len_tokens": tokens.sum(0) / len(tokens) ** 0.5,
            "weightedmean": (tokens * places).sum(0) / places.sum(),
            "lasttoken": tokens[-1],
        }
        assert np.allclose(alone[0], wanted[mode].numpy(), atol=1e-6)


def test_several_modes_stand_side_by_side_and_are_normalised_as_one(tmp_path):
    states = np.array([[[3.0, 0.0], [0.0, 4.0]]], dtype=np.float32)
    given = {"last_hidden_state": states, "attention_mask": np.ones((1, 2))}
    made = Embed(tmp_path, {"modes": ["cls", "lasttoken"], "normalise": True})(given)["sentence_embedding"]
    assert np.allclose(made, [[0.6, 0, 0, 0.8]])


def spans(start, end, offsets, text="abcdef"):
    """Logits for one row whose context has six letters."""
    given = {
        "start_logits": np.array([start], dtype=np.float32),
        "end_logits": np.array([end], dtype=np.float32),
        "offsets": np.array([offsets]),
        "TEXT": np.array([[b"?", text.encode()]], dtype=object),
    }
    return {name: value[0, 0] for name, value in Answer(None, {"longest": 2})(given).items()}


LETTERS = [(-1, -1), *((n, n + 1) for n in range(6))]


def test_an_answer_lies_within_the_context_ends_after_it_starts_and_is_not_too_long():
    assert spans([99, 0, 0, 5, 0, 0, 0], [99, 9, 0, 0, 4, 0, 9], LETTERS)["answer"] == b"cd"
    outside = spans([99, 0, 0, 0, 0, 0, 0], [99, 0, 0, 0, 0, 0, 0], LETTERS)
    assert outside["start"] >= 0


def test_shares_too_small_for_a_number_still_make_an_answer():
    told = spans([0, 0, 900, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 2000], LETTERS)
    assert (told["start"], told["end"], told["score"]) == (4, 6, 0)


def test_without_a_context_there_is_no_answer():
    told = spans([1, 2], [2, 1], [(-1, -1)] * 2, text="")
    assert told == {"answer": b"", "score": 0, "start": -1, "end": -1}


@pytest.fixture
def words(tmp_path):
    (tmp_path / "vocabulary.json").write_text(json.dumps(["a", "b", "[M]", "d"]))
    return tmp_path


def test_rows_with_fewer_masks_are_filled_up(words):
    ids = np.array([[2, 0, 2], [0, 2, 0]])
    logits = np.tile(np.array([0.0, 3, 1, 2, 9], dtype=np.float32), (2, 3, 1))
    made = Fill(words, {"mask": 2, "count": 2})({"input_ids": ids, "logits": logits})
    assert made["token_ids"].tolist() == [[[4, 1], [4, 1]], [[4, 1], [-1, -1]]]
    assert made["tokens"].tolist()[1] == [[b"", b"b"], [b"", b""]]  # the model knows more ids than the tokenizer
    assert made["scores"][1, 1].tolist() == [0, 0]
    assert np.isclose(made["scores"][0, 0, 0], np.exp(9) / np.exp([0, 3, 1, 2, 9]).sum())


def test_a_row_without_a_mask_is_an_error_of_its_request(words):
    with pytest.raises(ValueError, match="a text without a mask"):
        Fill(words, {"mask": 2, "count": 2})({"input_ids": np.array([[0, 2], [0, 0]]), "logits": np.zeros((2, 2, 5))})


def test_padding_has_no_label(words):
    given = {
        "logits": np.array([[[0.0, 2.0], [5.0, 0.0]]], dtype=np.float32),
        "input_ids": np.array([[9, 0]]),
        "attention_mask": np.array([[1, 0]]),
    }
    made = Tag(words, {"labels": ["x", "y"]})(given)
    assert made["labels"].tolist() == [[b"y", b""]]
    assert made["tokens"].tolist() == [[b"", b""]]  # an id that the tokenizer does not know, and padding
    assert np.allclose(made["scores"], [[np.exp(2) / (1 + np.exp(2)), 0]])


@pytest.fixture
def prepare(tmp_path):
    pytest.importorskip("PIL", reason="Pillow is not installed: no image can be prepared")

    def work(**settings):
        usual = {
            "size": [8, 8], "mode": "RGB", "crop": "center", "share": 0.8, "interpolation": "bilinear",
            "mean": [0.5] * 3, "std": [0.25] * 3, "last": True, "output": "images",
        }  # fmt: skip
        return Image(tmp_path, {**usual, **settings})

    return work


@pytest.mark.parametrize(
    ("crop", "own", "wanted"),
    [("center", (40, 20), (20, 10)), ("center", (20, 41), (10, 20)), ("squash", (40, 20), (10, 10)),
     ("border", (40, 20), (10, 5))],
)  # fmt: skip
def test_images_are_scaled_as_timm_scales_them(prepare, crop, own, wanted):
    assert prepare(crop=crop).target(*own) == wanted


def test_what_a_border_adds_is_the_mean_and_a_grey_image_has_one_channel(prepare):
    new = pytest.importorskip("PIL.Image", reason="Pillow is not installed").new
    wide = prepare(crop="border").cut(new("RGB", (10, 4), (255, 0, 0)))
    assert wide.size == (8, 8)
    assert wide.getpixel((0, 0)) == (128, 128, 128)
    assert wide.getpixel((0, 2)) == (255, 0, 0)
    small = prepare(mode="L", mean=[0.5], std=[0.25]).cut(new("L", (3, 3), 7))
    assert [small.getpixel((x, 4)) for x in (1, 2, 4, 5)] == [0, 7, 7, 0]
