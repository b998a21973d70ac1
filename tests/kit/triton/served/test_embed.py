"""Vectors as they are served: pooled, and padding counts for nothing."""

import numpy as np
import pytest
import torch

from engine.kit.triton.served.embed import Work as Embed


def settings(*modes, normalize=False):
    layers = [{"kind": "Normalize", "activation": "Identity", "residual": False}] if normalize else []
    return {"modes": modes, "skip": 0, "layers": layers, "truncate_dim": None}


MASKS = {
    "right": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]],
    "left": [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]],
}


@pytest.mark.parametrize("side", MASKS)
@pytest.mark.parametrize("mode", ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_padding_on_either_side_changes_no_pooled_vector(tmp_path, mode, side):
    states = np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32)
    mask = np.array(MASKS[side])
    work = Embed(tmp_path, settings(mode))
    together = work({"last_hidden_state": states, "attention_mask": mask})["sentence_embedding"]
    for row in range(2):
        own = states[row : row + 1, mask[row] == 1]
        seen = np.ones(own.shape[:2], dtype=np.int64)
        alone = work({"last_hidden_state": own, "attention_mask": seen})["sentence_embedding"]
        assert np.allclose(together[row], alone[0], atol=1e-6)
        tokens = torch.from_numpy(own[0])
        places = torch.arange(1, len(tokens) + 1)[:, None]
        expected = {
            "cls": tokens[0],
            "max": tokens.max(0).values,
            "mean": tokens.mean(0),
            "mean_sqrt_len_tokens": tokens.sum(0) / len(tokens) ** 0.5,
            "weightedmean": (tokens * places).sum(0) / places.sum(),
            "lasttoken": tokens[-1],
        }
        assert np.allclose(alone[0], expected[mode].numpy(), atol=1e-6)


def test_several_modes_stand_side_by_side_and_are_normalized_as_one(tmp_path):
    states = np.array([[[3.0, 0.0], [0.0, 4.0]]], dtype=np.float32)
    inputs = {"last_hidden_state": states, "attention_mask": np.ones((1, 2))}
    vectors = Embed(tmp_path, settings("cls", "lasttoken", normalize=True))(inputs)["sentence_embedding"]
    assert np.allclose(vectors, [[0.6, 0, 0, 0.8]])
