"""Boards: a name without memory is said to mean one of the boards that are sold under it."""

import pytest

from engine.gpus import CATALOGUE
from engine.gpus.names import read_as


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("A100", "A100 is read as A100-40GB; write A100-80GB for 80 GiB"),
        ("NVIDIA A100", "NVIDIA A100 is read as A100-40GB; write A100-80GB for 80 GiB"),
        ("A100 MIG 1g.10gb", "A100 is read as A100-40GB; write A100-80GB for 80 GiB"),
        ("A800", "A800 is read as A800-80GB; write A800-40GB for 40 GiB"),
        ("Orin NX", "Orin NX is read as the Jetson Orin NX with 16 GiB; write Jetson Orin NX 8GB for 8 GiB"),
    ],
)
def test_a_name_without_memory_means_one_of_several_boards(name, sentence):
    assert read_as(name) == sentence


@pytest.mark.parametrize(
    "name",
    ["A100-40GB", "NVIDIA A100-SXM4-80GB", "A10-24GB", "A100-40GB MIG 1g.5gb", "T4", "L40S", "cpu", "V100"],
)
def test_other_names_mean_one_board(name):
    assert read_as(name) is None


def test_few_names_of_the_catalogue_need_a_sentence():
    unclear = [gpu.name for gpu in CATALOGUE if read_as(gpu.name)]
    assert 5 <= len(unclear) <= 10
    assert not {"H100", "RTX 4090", "L4"} & set(unclear)
