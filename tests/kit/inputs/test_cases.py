"""Cases survive being kept, and the same cases give the same bytes."""

from __future__ import annotations

import os

import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case


def some_cases():
    ids = np.arange(6, dtype=np.int64).reshape(2, 3)
    return [
        Case("line 1", "Où est la gare ? 🎉\u2028", "sample", {"input_ids": ids}, {"logits": ids / 7}, 1),
        Case("random 1", "", "random", {"a/../b:0": np.float16([[0.5]]), "flag": np.array([True])}, {}, None),
    ]


def test_cases_come_back_as_they_were_saved(tmp_path):
    saved = some_cases()
    cases.save(saved, tmp_path / "cases")
    loaded = cases.load(tmp_path / "cases")
    assert [(c.name, c.text, c.kind, c.label) for c in loaded] == [(c.name, c.text, c.kind, c.label) for c in saved]
    for before, after in zip(saved, loaded, strict=True):
        for tensors, again in ((before.inputs, after.inputs), (before.outputs, after.outputs)):
            assert list(tensors) == list(again)
            for name, tensor in tensors.items():
                assert tensor.dtype == again[name].dtype
                assert np.array_equal(tensor, again[name])


def test_the_same_cases_give_the_same_bytes_in_any_directory(tmp_path, monkeypatch):
    cases.save(some_cases(), tmp_path / "here")
    monkeypatch.setattr("time.time", lambda: 1e9)  # a zip archive dates its entries
    cases.save(some_cases(), tmp_path / "elsewhere" / "deep")
    for name in (cases.LIST, cases.TENSORS):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "elsewhere" / "deep" / name).read_bytes()


def test_a_tensor_that_only_pickle_could_hold_is_refused(tmp_path):
    words = Case("words", "", "tensors", {"words": np.array(["a", None], dtype=object)}, {}, None)
    with pytest.raises(ValueError, match="allow_pickle"):
        cases.save([words], tmp_path)


def test_a_directory_without_cases_says_so(tmp_path):
    with pytest.raises(StepError) as caught:
        cases.load(tmp_path)
    assert str(caught.value) == "there are no cases in this directory: cases.json is missing"


def test_large_tensors_are_mapped_from_a_file_until_they_are_saved(tmp_path):
    outputs = {"small": np.arange(3.0), "flags": np.ones((1 << 20) + 1, bool), "logits": np.ones((4, 1 << 18), "f").T}
    case = Case("line 1", "", "sample", {"pixels": np.random.default_rng(0).random((3, 224, 224))}, outputs)
    cases.save([case], tmp_path / "plain")
    with (tmp_path / "outputs").open("w+b") as file:
        spill = cases.Spill(file)
        mapped = spill.keep(case)
        assert mapped.outputs["small"] is outputs["small"]
        again = spill.keep(mapped)
        for name, array in [*mapped.inputs.items(), *mapped.outputs.items()]:
            kept = (again.inputs | again.outputs)[name]
            assert kept is array, "what is in the file is not written once more"
        with (tmp_path / "outputs").open("rb") as other:
            assert np.array_equal(np.frombuffer(other.read(3 * 224 * 224 * 8)), case.inputs["pixels"].ravel())
        cases.save([mapped], tmp_path / "mapped")
    [plain], [saved] = cases.load(tmp_path / "plain"), cases.load(tmp_path / "mapped")
    assert all(np.array_equal(array, saved.outputs[name]) for name, array in plain.outputs.items())
    assert np.array_equal(plain.inputs["pixels"], saved.inputs["pixels"])


def test_thousands_of_images_take_few_open_files_and_little_memory(tmp_path):
    image = np.zeros((1, 3, 224, 224), "f")
    with (tmp_path / "inputs").open("w+b") as file:
        before, spill = len(os.listdir("/proc/self/fd")), cases.Spill(file)
        kept = [spill.keep(Case("", "", "sample", {"pixels": image + number}, {})) for number in range(300)]
        assert len(os.listdir("/proc/self/fd")) - before < 10
        assert all((case.inputs["pixels"] == number).all() for number, case in enumerate(kept))


def test_another_shape_or_a_value_that_is_no_number_is_a_difference():
    ones = np.ones((2, 3), np.float32)
    assert cases.relative_error(ones, ones[:1]) == float("inf")
    assert cases.relative_error(ones, np.full_like(ones, np.nan)) == float("inf")
    assert cases.relative_error(np.array([1, 2]), np.array([1, 3])) == 1
    assert cases.relative_error(np.full_like(ones, np.nan), np.full_like(ones, np.nan)) == 0
    assert cases.relative_error(np.array([2.0, np.inf]), np.array([2.0, np.nan])) == float("inf")
    assert cases.relative_error(np.array([2.0, -np.inf]), np.array([1.5, -np.inf])) == 0.25
