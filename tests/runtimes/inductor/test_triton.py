"""A compiled model in a package: Triton's PyTorch backend knows its tensors by position, clients by their names."""

import models
import pt2
import pytest

from engine.kit.triton import config as configs
from engine.kit.triton.serving import Serving
from engine.runtimes.execution import Execution
from engine.steps.package import Package

EXECUTION = Execution(runtime="inductor", options={})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return models.checkpoint(tmp_path_factory.mktemp("bert") / "model", task="text-classification")


def packaged(tmp_path, checkpoint, *, gpu=None, outputs=None, **fields):
    serving = Serving(model_name="m", ensemble="m_text", execution=EXECUTION, task="text-classification", **fields)
    built = pt2.write(tmp_path / "built", gpu=gpu, **({} if outputs is None else {"outputs": outputs}))
    Package(serving=serving).run(tmp_path / "package", validated=built, checkpoint=checkpoint)
    folders = sorted(path.parent for path in (tmp_path / "package").glob("*/config.pbtxt"))
    return {folder.name: configs.read(folder) for folder in folders}


def steps(config):
    return {each.model_name: (dict(each.input_map), dict(each.output_map)) for each in config.ensemble_scheduling.step}


def test_the_model_has_names_by_position_which_the_ensemble_maps_and_its_own_files(tmp_path, checkpoint):
    every = packaged(tmp_path, checkpoint, threads=2)
    assert sorted(every) == ["m", "m_postprocess", "m_text", "m_tokenizer"]
    model = every["m"]
    assert (model.platform, model.backend, model.max_batch_size) == ("torch_aoti", "pytorch", 0)
    assert [(each.name, list(each.dims)) for each in model.input] == [(f"INPUT__{i}", [-1, -1]) for i in range(3)]
    assert [(each.name, list(each.dims)) for each in model.output] == [("OUTPUT__0", [-1, 2])]
    assert model.parameters["INTRA_OP_THREAD_COUNT"].string_value == "2"
    assert sorted(path.name for path in (tmp_path / "package" / "m" / "1").iterdir()) == ["model.pt2", "passport.json"]
    inputs, outputs = steps(every["m_text"])["m"]
    assert inputs == {"INPUT__0": "input_ids", "INPUT__1": "attention_mask", "INPUT__2": "token_type_ids"}
    assert list(outputs) == ["OUTPUT__0"]


def test_a_package_without_texts_still_has_an_ensemble_with_the_models_names(tmp_path, checkpoint):
    every = packaged(tmp_path, checkpoint, tokenizer=False)
    assert sorted(every) == ["m", "m_text"]
    assert [each.name for each in every["m_text"].input] == ["input_ids", "attention_mask", "token_type_ids"]
    assert [each.name for each in every["m_text"].output] == ["logits"]


def test_another_order_in_the_recipe_gives_no_output_another_place(tmp_path, checkpoint):
    sizes = {"hidden": 4, "logits": 2}
    built = {name: {"dtype": "float32", "shape": ("batch", size)} for name, size in sizes.items()}
    listed = [{"name": name, "data_type": "TYPE_FP32", "dims": [-1, sizes[name]]} for name in ("logits", "hidden")]
    every = packaged(tmp_path, checkpoint, outputs=built, fields={"output": listed}, tokenizer=False)
    assert [(each.name, each.dims[1]) for each in every["m"].output] == [("OUTPUT__1", 2), ("OUTPUT__0", 4)]
    assert steps(every["m_text"])["m"][1] == {"OUTPUT__1": "logits", "OUTPUT__0": "hidden"}


def test_on_a_gpu_the_instance_is_a_gpus_and_the_warm_up_has_the_same_names(tmp_path, checkpoint):
    model = packaged(tmp_path, checkpoint, gpu=pt2.H100, largest={"batch": 8, "sequence": 32})["m"]
    assert [group.kind for group in model.instance_group] == [type(model.instance_group[0]).KIND_GPU]
    assert model.model_warmup
    assert {name for warmup in model.model_warmup for name in warmup.inputs} <= {f"INPUT__{i}" for i in range(3)}
    [first, *_] = model.model_warmup
    assert first.inputs["INPUT__0"].data_type == model.input[0].data_type
