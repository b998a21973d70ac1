"""Pickled weights become safetensors of the same tensors, and nothing of a pickle is ever run."""

import json
import os
import pickle

import models
import pytest

from engine import digest
from engine.errors import StepError
from engine.step import Source
from engine.steps.fetch import Fetch


def fetch(source, out):
    return Fetch(source=Source(uri=f"file:{source}"), weights="pickle-tensors-only").run(out, source=source)


def refusal(source, tmp_path):
    with pytest.raises(StepError) as caught:
        fetch(source, tmp_path / "refused")
    return str(caught.value)


@pytest.fixture
def directory(tmp_path):
    """A model whose settings are there and whose weights the test writes."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def pickled(tmp_path):
    """A random classifier whose weights, two of them views of others, were saved as a pickle."""
    import torch
    from safetensors.torch import load_file

    directory = models.checkpoint(tmp_path / "pickled", task="fill-mask")
    tensors = load_file(directory / "model.safetensors")
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"]
    tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"][:]
    torch.save(tensors, directory / "pytorch_model.bin")
    (directory / "model.safetensors").unlink()
    return directory


def test_a_pickle_of_tensors_is_converted_when_the_recipe_says_so(pickled, tmp_path):
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForMaskedLM

    original = torch.load(pickled / "pytorch_model.bin", weights_only=True)
    report = fetch(pickled, tmp_path / "out")
    assert report.task == "fill-mask"
    assert "pytorch_model.bin" not in digest.walk(tmp_path / "out")
    assert (pickled / "pytorch_model.bin").is_file()
    converted = load_file(tmp_path / "out" / "model.safetensors")
    assert converted.keys() == original.keys()
    assert all(torch.equal(converted[name], original[name]) for name in original)
    AutoModelForMaskedLM.from_pretrained(tmp_path / "out")
    fetch(pickled, tmp_path / "again")
    assert digest.of_file(tmp_path / "out" / "model.safetensors") == digest.of_file(
        tmp_path / "again" / "model.safetensors"
    )


def test_a_pickle_in_parts_is_converted_part_by_part(pickled, tmp_path):
    import torch
    from transformers import AutoModelForMaskedLM

    tensors = torch.load(pickled / "pytorch_model.bin", weights_only=True)
    names = sorted(tensors)
    halves = {1: names[: len(names) // 2], 2: names[len(names) // 2 :]}
    (pickled / "pytorch_model.bin").unlink()
    places = {}
    for number, half in halves.items():
        torch.save({name: tensors[name] for name in half}, pickled / f"pytorch_model-0000{number}-of-00002.bin")
        places |= dict.fromkeys(half, f"pytorch_model-0000{number}-of-00002.bin")
    (pickled / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    fetch(pickled, tmp_path / "out")
    assert not [name for name in digest.walk(tmp_path / "out") if "pytorch" in name]
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path / "out").state_dict()
    assert torch.equal(loaded["cls.predictions.bias"], tensors["cls.predictions.bias"])
    (pickled / "pytorch_model-00002-of-00002.bin").unlink()
    assert "pytorch_model.bin.index.json names pytorch_model-00002" in refusal(pickled, tmp_path)


class _Runs:
    """Runs a command in a shell when it is unpickled."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return (os.system, (self.command,))


def test_a_pickle_that_runs_code_is_refused_and_runs_nothing(directory, tmp_path):
    import torch

    marker = tmp_path / "was-here"
    torch.save({"w": _Runs(f"touch {marker}")}, directory / "pytorch_model.bin")
    error = refusal(directory, tmp_path)
    assert "pytorch_model.bin is cut off, or holds more than tensors" in error
    assert "it asks for posix.system" in error
    assert not marker.exists()


def test_a_pickle_of_anything_but_tensors_is_refused(directory, tmp_path):
    import torch

    torch.save({"state_dict": {"w": torch.zeros(1)}, "epoch": 3}, directory / "pytorch_model.bin")
    error = refusal(directory, tmp_path)
    assert "pytorch_model.bin is no plain table of tensors" in error
    assert "'epoch' is a int" in error
    torch.save([1], directory / "pytorch_model.bin")
    assert "it holds a list" in refusal(directory, tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x80", pickle.dumps({"w": 1}, protocol=2), b"<html>"])
def test_a_pickle_that_is_cut_off_is_refused(directory, tmp_path, content):
    (directory / "pytorch_model.bin").write_bytes(content)
    assert "pytorch_model.bin is " in refusal(directory, tmp_path)
