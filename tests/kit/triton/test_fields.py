"""Fields of a recipe, merged into our configuration."""

from text_config import model

from engine.kit.triton import fields as triton_fields


def merged(fields):
    config = model()
    triton_fields.merge(config, fields)
    return config


def test_fields_are_taken_verbatim_and_stand_over_ours():
    config = merged(
        {
            "dynamic_batching": {"max_queue_delay_microseconds": 100, "preferred_batch_size": [4, 8]},
            "instance_group": [{"count": 2, "kind": "KIND_CPU"}],
            "parameters": {"intra_op_thread_count": {"string_value": "1"}},
            "response_cache": {"enable": True},
        }
    )
    assert config.dynamic_batching.max_queue_delay_microseconds == 100
    assert [group.count for group in config.instance_group] == [2]
    assert config.parameters["intra_op_thread_count"].string_value == "1"
    assert config.response_cache.enable
    assert len(config.input) == 2


def test_a_message_is_merged_with_what_we_say_in_it():
    config = model(level="basic")
    triton_fields.merge(config, {"optimization": {"input_pinned_memory": {"enable": False}}})
    assert config.optimization.graph.level == -1
    assert config.optimization.HasField("input_pinned_memory")


def test_null_takes_a_field_out_and_an_empty_one_puts_it_in():
    assert not merged({"dynamic_batching": None}).HasField("dynamic_batching")
    assert merged({"sequence_batching": {}}).HasField("sequence_batching")
    assert merged({"version_policy": {"all": {}}}).version_policy.HasField("all")


def test_false_and_zero_stand_over_what_the_package_says():
    config = model(level="basic")
    config.optimization.cuda.graphs = True
    triton_fields.merge(config, {"optimization": {"graph": {"level": 0}, "cuda": {"graphs": False}}})
    assert config.optimization.graph.level == 0
    assert not config.optimization.cuda.graphs


def test_null_takes_a_field_out_of_a_message_and_a_key_out_of_a_map():
    config = model(level="basic")
    config.parameters["a"].string_value = "1"
    triton_fields.merge(config, {"optimization": {"graph": None, "eager_batching": True}, "parameters": {"a": None}})
    assert not config.optimization.HasField("graph")
    assert config.optimization.eager_batching
    assert not config.parameters
    assert config.HasField("dynamic_batching")
