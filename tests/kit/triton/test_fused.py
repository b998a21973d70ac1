"""Packages whose tokenizer and model are one Python model."""

import json

import executions
import models
import pytest

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import config as configs
from engine.kit.triton import fused, parts, repository
from engine.kit.triton.serving import Serving
from engine.recipe.values import Range
from engine.runtimes import routing


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A text classifier as an ONNX file, with its tokenizer."""
    return models.classifier_with_tokenizer(tmp_path_factory.mktemp("source"))


def write(source, out, **fields):
    fields = {"layout": "fused", "task": "text-classification", "largest": {"batch": 8}, **fields}
    serving = Serving(model_name="m", ensemble="m_text", **fields)
    return repository.write(out, serving, validated=source, checkpoint=source)


def test_one_model_has_the_files_of_all_parts_and_the_requirements_of_both(source, tmp_path):
    report = write(source, tmp_path / "p", threads=3)
    assert (report.name, report.models) == ("m_text", ("m_text",))
    folder = tmp_path / "p" / "m_text"
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {"1/model.onnx", "1/model.py", "1/fused.py", "1/session.py", "1/m_tokenizer/tokenizer.json",
            "1/m_postprocess/classify.py", "requirements.txt"} < names  # fmt: skip
    requirements = (folder / "requirements.txt").read_text()
    assert "tokenizers==" in requirements
    assert "onnxruntime==" in requirements
    session = json.loads((folder / "1" / "settings.json").read_text())["session"]
    assert session == {"file": "model.onnx", "level": "ORT_ENABLE_ALL", "threads": 3}
    assert repository.tokenizer_of(tmp_path / "p", "m") == folder / "1" / "m_tokenizer" / "tokenizer.json"


def test_the_order_of_tensors_in_the_settings_is_fixed(source, tmp_path):
    """Maps of protobuf have another order in each process, and equal packages have equal bytes."""
    write(source, tmp_path / "p")
    steps = json.loads((tmp_path / "p" / "m_text" / "1" / "settings.json").read_text())["steps"]
    assert len(steps) == 3
    assert any(len(step["gives"]) > 1 for step in steps)
    for step in steps:
        for names in (step["takes"], step["gives"]):
            assert list(names) == sorted(names)


def test_clients_meet_the_same_entry_as_in_an_ensemble(source, tmp_path):
    shown = []
    for layout in ("ensemble", "fused"):
        write(source, tmp_path / layout, layout=layout)
        config = configs.read(tmp_path / layout / "m_text")
        tensors = [(each.name, each.data_type, list(each.dims)) for each in (*config.input, *config.output)]
        shown.append((config.name, config.max_batch_size, tensors, config.parameters["recipe_task"].string_value))
    assert shown[0] == shown[1]


def test_fields_of_the_model_are_those_of_the_one_model(source, tmp_path):
    fields = {
        "instance_group": [{"count": 2, "kind": "KIND_CPU"}],
        "dynamic_batching": {"max_queue_delay_microseconds": 100},
        "parameters": {
            "intra_op_thread_count": {"string_value": "2"},
            "EXECUTION_ENV_PATH": {"string_value": "$$TRITON_MODEL_DIRECTORY/environment"},
        },
    }
    write(source, tmp_path / "p", fields=fields, threads=1)
    config = configs.read(tmp_path / "p" / "m_text")
    assert [group.count for group in config.instance_group] == [2]
    assert config.dynamic_batching.max_queue_delay_microseconds == 100
    assert not config.dynamic_batching.HasField("default_queue_policy")  # it makes Triton wait
    assert set(config.parameters) == {"recipe_task", "EXECUTION_ENV_PATH"}
    session = json.loads((tmp_path / "p" / "m_text" / "1" / "settings.json").read_text())["session"]
    assert session["threads"] == 2


SIZES = tuple({"batch": Range.model_validate(batch), "sequence": Range.model_validate(16)} for batch in (1, 4))
RANGES = ({"batch": Range.model_validate([1, 2, 8]), "sequence": Range.model_validate([1, 16, 32])},)


def on_gpu(source, out, *, profiles=(*SIZES, *RANGES), provider="cuda", **options):
    write(source, out, execution=executions.execution(provider, **options), profiles=profiles)
    return out / "m_text"


def test_a_package_for_a_gpu_has_its_own_session_and_knows_the_gpu_of_its_instance(source, tmp_path):
    folder = on_gpu(source, tmp_path / "p", tf32=False)
    config = configs.read(folder)
    assert [group.kind for group in config.instance_group] == [config.instance_group[0].KIND_GPU]
    assert not config.HasField("optimization")
    version = folder / "1"
    assert "enable_cuda_graph" in (version / "session.py").read_text()
    assert "model_instance_device_id" in (version / "model.py").read_text()
    write(source, tmp_path / "cpu")
    assert (version / "instance.py").read_bytes() == (tmp_path / "cpu" / "m_text" / "1" / "model.py").read_bytes()
    session = json.loads((version / "settings.json").read_text())["session"]
    facts = session.pop("routing")
    assert session == {
        "file": "model.onnx", "level": "ORT_ENABLE_ALL", "threads": 0, "graphs": True,
        "provider": "CUDAExecutionProvider", "options": {"use_tf32": "0"},
    }  # fmt: skip
    assert facts["fixed"] == [{"batch": 1, "sequence": 16}, {"batch": 4, "sequence": 16}]
    assert (facts["rows"], facts["tokens"], facts["outputs"]) == ("batch", "sequence", {"logits": ["batch", None]})
    assert facts["fill"] == {"input_ids": models.vocabulary()["[PAD]"], "attention_mask": 0}


def test_every_request_that_fits_a_profile_goes_to_one_and_larger_ones_to_none(source, tmp_path):
    session = json.loads((on_gpu(source, tmp_path / "p") / "1" / "settings.json").read_text())["session"]
    one = routing.Routing(session["routing"])
    assert [one.choose({"batch": batch, "sequence": 1}) for batch in (1, 2, 4)] == [0, 1, 1]
    with pytest.raises(ValueError, match="no profile takes"):
        one.choose({"batch": 1, "sequence": 17})


MODELS = {"tokenizer": {"instance_group": [{"count": 2, "kind": "KIND_CPU"}]}}
REFUSED = {
    "a package of the layout fused has no optimization": {"fields": {"optimization": {"graph": {"level": 1}}}},
    "overrides the tokenizer, but the package has no such model": {"models": MODELS},
    "it is for packages that take texts": {"tokenizer": False},
    "no Python model runs the built model of this runtime and device": {
        "execution": executions.execution("tensorrt", profiles=RANGES)
    },
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_one_python_model_cannot_do_is_refused_with_the_reason(source, tmp_path, why):
    with pytest.raises(StepError, match=why):
        write(source, tmp_path / "p", **REFUSED[why])


def test_ranges_alone_give_no_graphs(source, tmp_path):
    settings = json.loads((on_gpu(source, tmp_path / "p", profiles=RANGES) / "1" / "settings.json").read_text())
    assert settings["session"]["routing"] is None


def test_a_package_for_a_gpu_needs_onnx_runtime_for_gpus_in_the_version_that_is_here(source, tmp_path):
    folder = on_gpu(source, tmp_path / "p")
    [line] = [each for each in (folder / "requirements.txt").read_text().splitlines() if "onnxruntime" in each]
    assert line == f"onnxruntime-gpu[cuda,cudnn]=={parts._version('onnxruntime')}"


@pytest.mark.parametrize(
    ("shape", "known"),
    [
        (("batch", 3), ["batch", None]),
        (("batch", "sequence", 8), ["batch", "sequence", None]),
        (("y_0", 3), ["batch", None]),
        ((1, 3), [None, None]),
        (("batch", "y_1"), None),
        (("batch", "sequence + 1"), None),
        (None, None),
        (("sequence", "batch"), ["sequence", "batch"]),
    ],
)
def test_axes_of_outputs_are_known_by_their_names(shape, known):
    outputs = {"y": Input("y", "float32", shape or (), ranked=shape is not None)}
    assert fused._by_name(outputs, "batch", "sequence") == (None if known is None else {"y": known})
