"""The catalogue of GPUs."""

import pytest

from engine import gpus
from engine.errors import UsageError


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("T4", "T4"),
        ("t4", "T4"),
        ("Tesla T4", "T4"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
        ("rtx_4090", "RTX 4090"),
        ("NVIDIA A100-SXM4-40GB", "A100-40GB"),
        ("A100", "A100-40GB"),
        ("NVIDIA A100-PCIE-40GB", "A100-40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell"),
    ],
)
def test_a_gpu_is_found_by_the_names_that_people_and_drivers_use(name, found):
    assert gpus.find(name).name == found


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("T44", "did you mean T4?"),
        ("RTX 3900", "did you mean RTX 3090"),
        ("", "`recipe gpus` lists those that are known"),
        ("abacus", "`recipe gpus` lists those that are known"),
    ],
)
def test_an_unknown_gpu_gets_a_suggestion(name, hint):
    with pytest.raises(UsageError) as caught:
        gpus.find(name)
    assert caught.value.hint.startswith(hint)


def test_a_local_gpu_matches_only_its_own_name():
    assert gpus.matches("NVIDIA A10G", "A10G")
    assert not gpus.matches("NVIDIA A10G", "A10")
    assert not gpus.matches("abacus", "abacus")


def test_dtypes_come_with_the_generation():
    assert gpus.find("T4").dtypes == ("fp32", "fp16", "int8", "int4")
    assert "bf16" in gpus.find("A30").dtypes
    assert "fp8" not in gpus.find("A30").dtypes
    assert "fp8" in gpus.find("L4").dtypes


def test_names_are_told_apart():
    names = [name for gpu in gpus.CATALOGUE for name in (gpu.name, *gpu.aliases)]
    assert len({gpus.find(name).name for name in names}) == len(gpus.CATALOGUE)
    for gpu in gpus.CATALOGUE:
        assert gpus.find(gpu.name) is gpu
