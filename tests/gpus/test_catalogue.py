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


@pytest.mark.parametrize(
    ("name", "expected"),
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
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "RTX 4090 Laptop"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 2080 with Max-Q Design", "RTX 2080 Laptop"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX 4070 Ti SUPER"),
        ("Quadro RTX 6000", "Quadro RTX 6000"),
        ("NVIDIA RTX A2000 12GB", "RTX A2000 12GB"),
        ("NVIDIA TITAN RTX", "TITAN RTX"),
        ("NVIDIA GB10", "GB10"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA H20", "H20"),
        ("NVIDIA H20-3e", "H20-3e"),
        ("NVIDIA H800", "H800"),
        ("NVIDIA H800 PCIe", "H800 PCIe"),
        ("NVIDIA H800 NVL", "H800 NVL"),
        ("NVIDIA GH200 120GB", "GH200"),
        ("NVIDIA A800-SXM4-40GB", "A800-40GB"),
        ("NVIDIA A800 80GB PCIe LC", "A800-80GB"),
        ("NVIDIA A800-SXM4-80GB", "A800-80GB"),
        ("NVIDIA A800 40GB Active", "A800-40GB"),
        ("NVIDIA L20", "L20"),
        ("NVIDIA T4G", "T4G"),
        ("NVIDIA GeForce GTX 1630", "GTX 1630"),
        ("NVIDIA GeForce GTX 1650", "GTX 1650"),
        ("NVIDIA GeForce GTX 1650 SUPER", "GTX 1650 SUPER"),
        ("NVIDIA GeForce GTX 1650 Ti with Max-Q Design", "GTX 1650 Ti Laptop"),
        ("NVIDIA GeForce GTX 1660", "GTX 1660"),
        ("NVIDIA GeForce GTX 1660 SUPER", "GTX 1660 SUPER"),
        ("NVIDIA GeForce GTX 1660 Ti", "GTX 1660 Ti"),
        ("NVIDIA GeForce GTX 1660 Ti with Max-Q Design", "GTX 1660 Ti Laptop"),
        ("NVIDIA GeForce GTX 1650 with Max-Q Design", "GTX 1650 Laptop"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell"),
        ("A10-24GB", "A10"),
        ("T4 16GB", "T4"),
        ("H100-80GB", "H100"),
        ("GH200-96GB", "GH200"),
        ("NVIDIA L40S 48 GiB", "L40S"),
        ("H100 NVL 94GB", "H100 NVL"),
    ],
)
def test_a_gpu_is_found_by_the_names_that_people_and_drivers_use(name, expected):
    assert gpus.find(name).name == expected


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


def test_dtypes_come_with_the_generation():
    assert gpus.find("T4").dtypes == ("fp32", "fp16", "int8")
    assert gpus.find("A30").dtypes == ("fp32", "tf32", "fp16", "bf16", "int8", "int4")
    assert "fp4" in gpus.find("RTX 5090").dtypes
    assert "fp4" not in gpus.find("H100").dtypes
    assert "bf16" in gpus.find("A30").dtypes
    assert "fp8" not in gpus.find("A30").dtypes
    assert "fp8" in gpus.find("L4").dtypes


def test_the_types_of_every_gpu_are_those_of_the_cuda_programming_guide():
    table = runpy.run_path(Path(fake_nvidia.__file__).parent / "fake_tensorrt" / "tensorrt" / "_precisions.py")[
        "HARDWARE"
    ]
    names = {"tf32": "TF32", "fp16": "HALF", "bf16": "BF16", "int8": "INT8", "fp8": "FP8", "fp4": "FP4"}
    assert {gpu.sm for gpu in gpus.CATALOGUE} == table.keys()
    for gpu in gpus.CATALOGUE:
        assert {names[dtype] for dtype in gpu.dtypes if dtype in names} == table[gpu.sm], gpu.name


def test_names_are_told_apart():
    names = [name for gpu in gpus.CATALOGUE for name in (gpu.name, *gpu.aliases)]
    assert len({gpus.find(name).name for name in names}) == len(gpus.CATALOGUE)
    for gpu in gpus.CATALOGUE:
        assert gpus.find(gpu.name) is gpu


def test_a_part_of_a_gpu_has_the_memory_of_the_part_and_is_no_other_part():
    part = gpus.find("NVIDIA A100-SXM4-40GB MIG 1g.5gb")
    assert (part.name, part.sm, part.memory_gib) == ("A100-40GB MIG 1g.5gb", 80, 5)
    assert gpus.find("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me").memory_gib == 10
    assert gpus.matches("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100 MIG 1g.5gb")
    assert not gpus.matches("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100")
    assert not gpus.matches("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100 MIG 2g.10gb")


def test_a_part_of_the_multiprocessors_of_a_slice_is_another_gpu_with_the_memory_of_the_slice():
    part = gpus.find("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb")
    assert (part.name, part.memory_gib) == ("A100-40GB MIG 1c.3g.20gb", 20)
    assert gpus.find("A100 MIG 3c.3g.20gb").name == "A100-40GB MIG 3g.20gb"
    assert not gpus.matches("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "A100 MIG 3g.20gb")


def test_each_slice_that_the_guide_lists_is_one():
    names = [f"{whole} MIG {part}" for whole, slices in SLICES.items() for part in slices]
    assert len(names) > 50
    assert {gpus.find(name).name for name in names} == set(names)


@pytest.mark.parametrize(
    ("name", "known_as", "memory_gib"),
    [
        ("GRID T4-8C", "T4-8C", 8),
        ("NVIDIA A10-24Q", "A10-24Q", 24),
        ("GRID A100D-40C", "A100-80GB-40C", 40),
        ("NVIDIA A100-2-10C", "A100-40GB-2-10C", 10),
    ],
)
def test_a_vgpu_is_a_gpu_of_its_own(name, known_as, memory_gib):
    part = gpus.find(name)
    assert (part.name, part.memory_gib) == (known_as, memory_gib)
    assert gpus.find(known_as) == part
    assert not gpus.matches(name, name.split()[1].split("-")[0])


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
    first = {name: gpus.find(name).tensorrt for name in ("T4", "H100", "B200", "RTX 5090", "GB300", "GB10")}
    assert first == {
        "T4": "10.0",
        "H100": "10.0",
        "B200": "10.8",
        "RTX 5090": "10.8",
        "GB300": "10.14.1",
        "GB10": "10.14.1",
    }


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
