"""What Triton refuses to load, written as rules."""

import pytest
import text_config
from google.protobuf import text_format
from refused_configs import ENSEMBLE, MODEL, REFUSED
from text_config import SIGNATURE, tensors
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.triton import config as configs
from engine.kit.triton import fields, loading
from engine.kit.triton.config import Signature
from engine.runtimes.backends import Backend


def parsed(text):
    return text_format.Parse(text, model_config_pb2.ModelConfig())


def repository(text):
    config = parsed(text)
    return [config] if config.name == "m" else [parsed(MODEL), config]


def test_a_model_and_an_ensemble_that_triton_loads_are_accepted():
    loading.refuse(repository(ENSEMBLE))
    loading.refuse([text_config.model()])


@pytest.mark.parametrize("case", REFUSED)
def test_a_configuration_that_triton_refuses_is_refused(case):
    with pytest.raises(StepError, match="Triton would refuse to load") as caught:
        loading.refuse(repository(REFUSED[case]))
    assert all(fact.startswith(("m: ", "e: ")) for fact in caught.value.facts), "each problem names its model"


SHAPES = {name: {"dim": [16]} for name in SIGNATURE.inputs}


def of(spec=None, *, batch=8, signature=SIGNATURE, profiles=2, **overrides):
    config = text_config.model(backend=Backend.TENSORRT, gpu=True, batch=batch)
    if spec is not None:
        overrides["optimization"] = {"cuda": {"graphs": True, "graph_spec": [spec]}}
    fields.merge(config, overrides)
    assert configs.as_text(config)
    return list(loading.engine_problems(config, signature, profiles=profiles))


def test_an_engine_as_it_is_packed_is_accepted():
    assert of() == []
    assert of({"batch_size": 8, "input": SHAPES}) == []
    assert of({"batch_size": 8}) == []
    assert of({"batch_size": 8, "input": SHAPES, "graph_lower_bound": {"batch_size": 1, "input": SHAPES}}) == []
    assert of(instance_group=[{"profile": ["0", "1"]}]) == []


OTHER_INPUTS = {**SHAPES, "input_ids": {"dim": [17]}}
FLOATS = tensors(input_ids=("b", "s"), attention_mask=("b", "s"))
ENGINE_PROBLEMS = {
    "a CUDA graph of batch 9": {"spec": {"batch_size": 9, "input": SHAPES}},
    "a CUDA graph of no rows": {"spec": {"input": SHAPES}},
    "a CUDA graph of batch 1": {"spec": {"batch_size": 1}, "batch": 0},
    "the shape of the input 'attention_mask' is missing": {
        "spec": {"batch_size": 8, "input": {"input_ids": {"dim": [16]}}}
    },
    "`dim[0]` is -1": {"spec": {"batch_size": 8, "input": {**SHAPES, "input_ids": {"dim": [-1]}}}},
    "the lower bound has no shape": {
        "spec": {"batch_size": 8, "input": SHAPES, "graph_lower_bound": {"batch_size": 1}}
    },
    "is [17], and the graph's shape [16]": {
        "spec": {
            "batch_size": 8, "input": SHAPES, "graph_lower_bound": {"batch_size": 1, "input": OTHER_INPUTS},
        }
    },
    "no input 'input_ids'": {"signature": Signature(tensors(other=("batch", "s")), SIGNATURE.outputs)},
    "cannot be [-1, 384]: the model has [-1, 385]": {
        "signature": Signature(SIGNATURE.inputs, tensors(last_hidden_state=("batch", "s", 385)))
    },
    "has shape [8, 's', 384]": {"signature": Signature(SIGNATURE.inputs, tensors(last_hidden_state=(8, "s", 384)))},
    "is TYPE_FP32 in the model, not TYPE_INT64": {"signature": Signature(FLOATS, SIGNATURE.outputs)},
    "the engine has no profile 2": {"instance_group": [{"profile": ["2"]}]},
}  # fmt: skip


@pytest.mark.parametrize("problem", ENGINE_PROBLEMS)
def test_what_does_not_suit_the_engine_is_refused(problem):
    assert problem in " ".join(of(**ENGINE_PROBLEMS[problem]))
