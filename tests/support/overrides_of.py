"""Overrides that fit Triton's ModelConfig, as a recipe may write them: pasted ones, and random ones."""

from hypothesis import strategies as st

from engine.recipe.model_config import ENUMS, MESSAGES, ONE_OF

# What is pasted from a config.pbtxt, in YAML's form, says the same and is fine.
PASTED = """
name: tiny
model: {source: layers.onnx}
profiles: [{batch: [1, 2, 8]}]
package:
  triton:
    name: tiny
    platform: onnxruntime_onnx
    backend: onnxruntime
    default_model_filename: model.onnx
    max_batch_size: 8
    input: [{name: x, data_type: TYPE_FP32, dims: [64]}]
    output: [{name: y, data_type: TYPE_FP32, dims: ["4"]}]
    instance_group:
      - {name: workers, kind: KIND_CPU, count: 2, rate_limiter: {resources: [{name: lane, count: 1}], priority: 2}}
    dynamic_batching:
      preferred_batch_size: [4, 8]
      max_queue_delay_microseconds: 500
      preserve_ordering: false
      priority_levels: 2
      default_priority_level: 2
      default_queue_policy: {timeout_action: REJECT, default_timeout_microseconds: 1000000, max_queue_size: 64}
      priority_queue_policy: {"1": {timeout_action: DELAY, allow_timeout_override: true}}
    version_policy: {specific: {versions: [1]}}
    optimization:
      graph: {level: 1}
      priority: PRIORITY_MAX
      input_pinned_memory: {enable: false}
      eager_batching: true
    parameters:
      intra_op_thread_count: {string_value: "1"}
      session.use_device_allocator_for_initializers: {string_value: "1"}
    model_warmup:
      - {name: zeros, batch_size: 8, count: 2, inputs: {x: {data_type: TYPE_FP32, dims: [64], zero_data: true}}}
      - {name: any, batch_size: 1, inputs: {x: {data_type: TYPE_FP32, dims: [64], random_data: true}}}
    response_cache: {enable: true}
    metric_tags: {team: search}
    model_transaction_policy: {decoupled: false}
"""

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8)
SCALARS = {
    "string": TEXT,
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**63), 2**63 - 1).map(str),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.integers(0, 2**64 - 1) | st.integers(0, 2**64 - 1).map(str),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000),
    "double": st.floats(allow_nan=False, allow_infinity=False),
}
KEYS = {"string": TEXT, "uint64": st.integers(0, 2**64 - 1).map(str)}


def values(kind):
    """Values of one of the types that engine.recipe.model_config names."""
    if kind.startswith("["):
        return st.lists(values(kind[1:-1]), max_size=3)
    if kind.startswith("{"):
        key, inner = kind[1:-1].split(":")
        return st.dictionaries(KEYS[key], values(inner), max_size=3)
    if kind in MESSAGES:
        return st.deferred(lambda: messages(kind))
    return st.sampled_from(ENUMS[kind][kind == "DataType" :]) if kind in ENUMS else SCALARS[kind]


def messages(kind="ModelConfig"):
    """Mappings with some of a message's fields, of those that exclude each other one at most."""
    alone = [name for group in ONE_OF.get(kind, ()) for name in group]
    free = {name: values(inner) for name, inner in MESSAGES[kind].items() if name not in alone}
    some = st.fixed_dictionaries({}, optional=free)
    for group in ONE_OF.get(kind, ()):
        one = st.sampled_from(group).flatmap(lambda name: values(MESSAGES[kind][name]).map(lambda it: {name: it}))
        some = st.tuples(some, st.just({}) | one).map(lambda pair: {**pair[0], **pair[1]})
    return some
