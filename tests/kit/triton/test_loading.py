"""What Triton refuses to load, written as rules."""

import pytest
import text_config
from google.protobuf import text_format
from refused_configs import ENSEMBLE, MODEL, REFUSED
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.triton import loading


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
