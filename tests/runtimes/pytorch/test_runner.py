"""PyTorch as a rival: TF32 as the recipe says it, for products and convolutions alike."""

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


@pytest.mark.parametrize("tf32", [False, True])
def test_what_the_recipe_says_of_tf32_counts_for_products_and_convolutions(backends, capsys, tf32):
    runner._use_tf32(tf32)
    assert backends.cuda.matmul.allow_tf32 is backends.cudnn.allow_tf32 is tf32
    assert f"matrix products {tf32}, convolutions {tf32}" in capsys.readouterr().out


def test_pytorch_keeps_its_defaults_where_the_recipe_is_silent_and_says_them(backends, capsys):
    before = (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32)
    runner._use_tf32(None)
    assert (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32) == before
    assert f"matrix products {before[0]}, convolutions {before[1]}" in capsys.readouterr().out
