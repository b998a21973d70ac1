"""Overrides of Triton's configuration on a real server: it takes them, reports them back, and does them."""

from pathlib import Path

import graphs
import models
import numpy as np
import pytest
import triton_server
import yaml
from overrides_of import PASTED
from tritonclient import grpc

from engine.recipe.schema import Recipe
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_triton_refuses.py loads what the rules accept")]

TEXTS = """
name: films
model: {source: model, task: text-classification}
profiles: [{batch: [1, 2, 8], sequence: [1, 16, 64]}]
package:
  triton:
    instance_group: [{count: 2, kind: KIND_CPU}]
    dynamic_batching: {preferred_batch_size: [8], max_queue_delay_microseconds: 200}
    model_warmup:
      - name: short
        batch_size: 2
        inputs:
          input_ids: {data_type: TYPE_INT64, dims: [16], zero_data: true}
          attention_mask: {data_type: TYPE_INT64, dims: [16], random_data: true}
          token_type_ids: {data_type: TYPE_INT64, dims: [16], input_data_file: 'file:%s'}
    models:
      tokenizer:
        instance_group: [{count: 2, kind: KIND_CPU}]
        dynamic_batching: {max_queue_delay_microseconds: 100}
        model_warmup:
          - {name: empty, batch_size: 1, inputs: {TEXT: {data_type: TYPE_STRING, dims: [1], zero_data: true}}}
      postprocess: {parameters: {note: {string_value: any}}, metric_tags: {team: search}}
      ensemble: {response_cache: {enable: true}}
"""


def package(text, out, model, checkpoint):
    step = Package.for_recipe(Recipe.model_validate(yaml.safe_load(text)))
    data = {name: Path(source.uri.removeprefix("file:")) for name, source in step.sources().items()}
    step.run(out, validated=model, checkpoint=checkpoint, **data)


@pytest.fixture(scope="module")
def server(environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    layers = graphs.write(folder / "layers", graphs.layers())
    package(PASTED, folder / "layers-package", layers, layers)
    checkpoint = models.checkpoint(folder / "checkpoint", "bert", task="text-classification")
    np.ones(16, np.int64).tofile(folder / "types.bin")
    package(TEXTS % (folder / "types.bin"), folder / "texts-package", graphs.tiny("bert"), checkpoint)
    with triton_server.serving(environment, folder / "layers-package", folder / "texts-package") as running:
        yield running


@pytest.fixture
def client(server):
    client = grpc.InferenceServerClient(server.grpc)
    yield client
    client.close()


def test_a_pasted_configuration_is_what_the_server_reports(client):
    fields = yaml.safe_load(PASTED)["package"]["triton"]
    config = client.get_model_config("tiny").config
    assert [(group.name, group.count) for group in config.instance_group] == [("workers", 2)]
    assert config.instance_group[0].rate_limiter.priority == 2
    batching = config.dynamic_batching
    assert list(batching.preferred_batch_size) == fields["dynamic_batching"]["preferred_batch_size"]
    assert batching.max_queue_delay_microseconds == 500
    assert (batching.priority_levels, batching.default_priority_level) == (2, 2)
    assert batching.default_queue_policy.max_queue_size == 64
    assert batching.priority_queue_policy[1].allow_timeout_override
    assert list(config.version_policy.specific.versions) == [1]
    assert config.optimization.graph.level == 1
    assert config.parameters["intra_op_thread_count"].string_value == "1"
    assert [warm.name for warm in config.model_warmup] == ["zeros", "any"]
    assert config.response_cache.enable
    assert config.metric_tags["team"] == "search"


def test_a_model_is_warmed_up_by_a_file_that_came_with_the_package(client):
    [sample] = client.get_model_config("films").config.model_warmup
    assert sample.inputs["token_type_ids"].input_data_file == "types.bin"


def test_the_overrides_of_each_part_arrive_there_and_nowhere_else(client):
    configs = {
        part: client.get_model_config(f"films{part}").config for part in ("", "_tokenizer", "_postprocess", "_text")
    }
    assert [configs[part].instance_group[0].count for part in ("", "_tokenizer", "_postprocess")] == [2, 2, 1]
    assert configs[""].dynamic_batching.max_queue_delay_microseconds == 200
    assert configs["_tokenizer"].dynamic_batching.max_queue_delay_microseconds == 100
    assert configs["_postprocess"].parameters["note"].string_value == "any"
    assert configs["_postprocess"].metric_tags["team"] == "search"
    assert [part for part, config in configs.items() if config.response_cache.enable] == ["_text"]
    assert configs["_text"].parameters["recipe_task"].string_value == "text-classification"


def test_a_model_with_every_override_answers(client):
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    answer = client.infer("tiny", triton_server.inputs(x=x), client_timeout=30, priority=1, timeout=10_000_000)
    assert answer.as_numpy("y").shape == (3, 4)


def test_the_second_answer_to_a_text_comes_from_the_cache(client):
    def ask():
        text = triton_server.inputs(TEXT=triton_server.texts("a film of note"))
        return client.infer("films_text", text, client_timeout=30).as_numpy("scores")

    def hits():
        [statistics] = client.get_inference_statistics("films_text").model_stats
        return statistics.inference_stats.cache_hit.count

    before, first = hits(), ask()
    assert np.array_equal(ask(), first)
    assert hits() == before + 1
