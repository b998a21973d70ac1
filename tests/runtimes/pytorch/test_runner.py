"""PyTorch as a rival: TF32 for products and convolutions alike, which no other contender gets, and usual attention."""

import executions
import models
import pytest
import torch

from engine.runtimes.pytorch import runner


@pytest.fixture
def backends():
    """What PyTorch lets users set, with the values of before put back afterwards."""
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (products.allow_tf32, convolutions.allow_tf32)
    yield torch.backends
    products.allow_tf32, convolutions.allow_tf32 = before


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("tf32", [False, True])
def test_tf32_counts_for_products_and_convolutions_of_one_contender(backends, tf32, before):
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = before
    with runner._settings(1, tf32):
        assert backends.cuda.matmul.allow_tf32 is backends.cudnn.allow_tf32 is tf32
    assert backends.cuda.matmul.allow_tf32 is backends.cudnn.allow_tf32 is before


def test_pytorch_keeps_its_defaults_where_the_recipe_is_silent(backends):
    before = (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32)
    with runner._settings(1, None):
        assert (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32) == before


def test_settings_are_put_back_after_an_error(backends):
    threads, allowed = torch.get_num_threads(), backends.cuda.matmul.allow_tf32
    with pytest.raises(KeyError), runner._settings(threads + 1, not allowed):
        raise KeyError
    assert (torch.get_num_threads(), backends.cuda.matmul.allow_tf32) == (threads, allowed)


@pytest.mark.parametrize(("architecture", "attention"), [("bert", "sdpa"), ("deberta-v2", "eager")])
def test_the_model_computes_attention_as_its_users_do(tmp_path, architecture, attention):
    checkpoint = models.checkpoint(tmp_path, architecture, task="text-classification")
    model = runner._loaded(executions.original(checkpoint))
    assert model.model.config._attn_implementation == attention
