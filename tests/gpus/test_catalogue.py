"""The catalogue of GPUs."""

import argparse
import json
import runpy
from pathlib import Path

import fake_nvidia
import pytest

from engine import gpus
from engine.commands import gpus as command
from engine.errors import UsageError
from engine.gpus.parts import SLICES

NAMES = """
T4: t4, Tesla T4, T4 16GB
A10: NVIDIA A10, A10-24GB
L40S: NVIDIA L40S 48 GiB
RTX 3090: NVIDIA GeForce RTX 3090
RTX 4090: rtx_4090, NVIDIA GeForce RTX 4090
RTX 4090 Laptop: NVIDIA GeForce RTX 4090 Laptop GPU
RTX 2080 Laptop: NVIDIA GeForce RTX 2080 with Max-Q Design
RTX 4070 Ti SUPER: NVIDIA GeForce RTX 4070 Ti SUPER
A100-40GB: NVIDIA A100-SXM4-40GB, A100, NVIDIA A100-PCIE-40GB
A100-80GB: NVIDIA A100-SXM4-80GB, NVIDIA A100 80GB PCIe
H100: NVIDIA H100 80GB HBM3, H100-80GB
H100 NVL: H100 NVL 94GB
GH200: NVIDIA GH200 480GB, NVIDIA GH200 120GB, GH200-96GB
A800-40GB: NVIDIA A800-SXM4-40GB, NVIDIA A800 40GB Active
A800-80GB: NVIDIA A800 80GB PCIe LC, NVIDIA A800-SXM4-80GB
GTX 1650: NVIDIA GeForce GTX 1650
GTX 1650 SUPER: NVIDIA GeForce GTX 1650 SUPER
GTX 1650 Laptop: NVIDIA GeForce GTX 1650 with Max-Q Design
GTX 1650 Ti Laptop: NVIDIA GeForce GTX 1650 Ti with Max-Q Design
RTX 6000 Ada: NVIDIA RTX 6000 Ada Generation
RTX PRO 6000 Blackwell: NVIDIA RTX PRO 6000 Blackwell Server Edition
"""
"""GPUs with further names, by which people and drivers know them; a driver may say NVIDIA before any name."""


@pytest.mark.parametrize("row", NAMES.strip().splitlines())
def test_a_gpu_is_found_by_the_names_that_people_and_drivers_use(row):
    expected, _, names = row.partition(": ")
    assert {name: gpus.find(name).name for name in names.split(", ")} == dict.fromkeys(names.split(", "), expected)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("T44", "did you mean T4"),
        ("RTX 3900", "did you mean RTX 3090"),
        ("A10-16GB", "did you mean A10 (24 GiB)?"),
        ("", "`recipe gpus` lists those that are known"),
        ("cuda", "name the GPU, as in `device: T4`"),
        ("GPU", "name the GPU, as in `device: T4`"),
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


def test_the_types_of_every_gpu_are_those_of_the_cuda_programming_guide():
    table = runpy.run_path(Path(fake_nvidia.__file__).parent / "fake_tensorrt" / "tensorrt" / "_precisions.py")[
        "HARDWARE"
    ]
    names = {"tf32": "TF32", "fp16": "HALF", "bf16": "BF16", "int8": "INT8", "fp8": "FP8", "fp4": "FP4"}
    assert {gpu.sm for gpu in gpus.CATALOGUE} == table.keys()
    for gpu in gpus.CATALOGUE:
        assert {names[dtype] for dtype in gpu.dtypes if dtype in names} == table[gpu.sm], gpu.name
        assert ("int4" in gpu.dtypes) == (gpu.sm >= 80), "weights of 4 bits need Ampere"
    assert gpus.find("A30").dtypes == ("fp32", "tf32", "fp16", "bf16", "int8", "int4"), "as messages list them"


def test_names_are_told_apart():
    names = [name for gpu in gpus.CATALOGUE for name in (gpu.name, *gpu.aliases)]
    assert len({gpus.find(name).name for name in names}) == len(gpus.CATALOGUE)
    for gpu in gpus.CATALOGUE:
        assert gpus.find(gpu.name) is gpus.find(f"NVIDIA {gpu.name}") is gpu


@pytest.mark.parametrize(
    ("name", "known_as", "memory_gib"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100-40GB MIG 1g.5gb", 5),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "H100 MIG 1g.10gb+me", 10),
        ("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "A100-40GB MIG 1c.3g.20gb", 20),
        ("A100 MIG 3c.3g.20gb", "A100-40GB MIG 3g.20gb", 20),
        ("GRID T4-8C", "T4-8C", 8),
        ("NVIDIA A10-24Q", "A10-24Q", 24),
        ("GRID A100D-40C", "A100-80GB-40C", 40),
        ("NVIDIA A100-2-10C", "A100-40GB-2-10C", 10),
    ],
)
def test_a_slice_and_a_vgpu_are_gpus_of_their_own_with_the_memory_of_the_part(name, known_as, memory_gib):
    part = gpus.find(name)
    assert (part.name, part.memory_gib) == (known_as, memory_gib)
    assert gpus.find(known_as) == part
    assert gpus.matches(name, known_as)
    others = ("A100", "A100 MIG 2g.10gb", "H100", "T4", "A10")
    assert not any(gpus.matches(name, other) for other in others)
    assert gpus.matches(name, "A100 MIG 3g.20gb") is (known_as == "A100-40GB MIG 3g.20gb")


def test_each_slice_that_the_guide_lists_is_one():
    names = [f"{whole} MIG {part}" for whole, slices in SLICES.items() for part in slices]
    assert len(names) > 50
    assert {gpus.find(name).name for name in names} == set(names)


def test_a_jetson_whose_driver_names_only_the_family_is_any_of_it():
    assert gpus.matches("Orin (nvgpu)", "Jetson Orin NX")
    assert gpus.matches("NVIDIA Thor", "Jetson Thor")
    assert not gpus.matches("Orin (nvgpu)", "Jetson Thor")
    with pytest.raises(UsageError) as caught:
        gpus.find("Orin (nvgpu)")
    assert "Jetson AGX Orin or " in caught.value.hint


@pytest.mark.parametrize("name", ["V100", "Tesla V100-SXM2-16GB", "Tesla P4", "Tesla P100-PCIE-16GB"])
def test_what_is_too_old_is_known_and_refused_with_the_reason(name):
    with pytest.raises(UsageError, match=r"nothing is built for the [VP]1?0?0?4? \(SM[67][01]\): TensorRT") as caught:
        gpus.find(name)
    assert "TensorRT 10.5.0 Release Notes" in " ".join(caught.value.facts)
    assert caught.value.hint == "the nearest that works is the T4 (SM75)"


def test_every_row_says_where_it_is_from():
    for row in (*gpus.CATALOGUE, *gpus.UNSUPPORTED):
        assert row.sources
        assert set(row.sources) <= gpus.SOURCES.keys(), row.name
    assert all(address.startswith("https://") for _, address in gpus.SOURCES.values())
    assert "tensorrt-rtx" not in gpus.find("A100").sources  # NVIDIA's matrix has no SM80, the library has
    used = {tag for row in (*gpus.CATALOGUE, *gpus.UNSUPPORTED) for tag in row.sources}
    assert used == gpus.SOURCES.keys()


def test_blackwell_came_with_later_versions():
    names = ("T4", "H100", "B200", "RTX 5090", "GB300", "GB10")
    assert [gpus.find(name).tensorrt for name in names] == ["10.0", "10.0", "10.8", "10.8", "10.14.1", "10.14.1"]


def shown(capsys, *words):
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    assert command.run(parser.parse_args(words)) == 0
    return capsys.readouterr().out


def test_the_command_lists_all_or_tells_of_one(capsys):
    table = shown(capsys)
    assert all(gpu.name in table for gpu in (*gpus.CATALOGUE, *gpus.UNSUPPORTED))
    one = shown(capsys, "NVIDIA", "A10G")
    assert one.startswith("A10G: Ampere, SM86, 24 GiB")
    assert "https://aws.amazon.com/ec2/instance-types/g5/" in one
    assert "MIG" not in one
    assert "A100-40GB MIG 3g.20gb, A100-40GB MIG 4g.20gb" in shown(capsys, "A100")


def test_the_command_speaks_json(capsys):
    rows = json.loads(shown(capsys, "--json"))
    assert len(rows) == len(gpus.CATALOGUE) + len(gpus.UNSUPPORTED)
    (row,) = json.loads(shown(capsys, "--json", "Tesla", "T4"))
    assert (row["name"], row["sm"], row["dtypes"], row["tensorrt_rtx"]) == ("T4", 75, ["fp32", "fp16", "int8"], True)
    assert {"title", "url"} == set(row["sources"][0])


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("T4 MIG 1g.5gb", "the T4 cannot be divided"),
        ("NVIDIA GeForce RTX 3090 MIG 1g.5gb", "the RTX 3090 cannot be divided"),
        ("A100 MIG 9g.999gb", "the A100-40GB has 40 GiB, and no part of 999 GB"),
        ("A100 MIG 0g.0gb", "no part of 0 GB"),
        ("A100 MIG 9g.5gb", "the A100-40GB has no part MIG 9g.5gb"),
        ("A100 MIG 7g.5gb", "the A100-40GB has no part MIG 7g.5gb"),
        ("A100 MIG 4c.3g.20gb", "the A100-40GB has no part MIG 4c.3g.20gb"),
        ("GB200 MIG 9g.180gb", "the GB200 has no part MIG 9g.180gb"),
        ("T4-17C", "the T4 has 16 GiB, and no part of 17 GB"),
    ],
)
def test_a_part_that_no_gpu_has_is_none(name, error):
    with pytest.raises(UsageError, match=error):
        gpus.find(name)
