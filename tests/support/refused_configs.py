"""Configurations that Triton refuses to load, and a model and an ensemble that it loads."""

IO = """
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
"""
MODEL = 'name: "m" backend: "python" max_batch_size: 4' + IO
STEP = 'step { model_name: "m" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }'
ENSEMBLE = 'name: "e" platform: "ensemble" max_batch_size: 4' + IO + f"ensemble_scheduling {{ {STEP} }}"
REFUSED = {
    "no dims": MODEL + 'input { name: "z" data_type: TYPE_FP32 }',
    "a size of 0": MODEL + 'input { name: "z" data_type: TYPE_FP32 dims: 0 }',
    "no data type": MODEL + 'input { name: "z" dims: 1 }',
    "a scalar without batches": MODEL.replace("4", "0") + 'input {name: "z" data_type: TYPE_FP32 dims: 1 reshape {} }',
    "a reshape of another size": MODEL + 'input {name: "z" data_type: TYPE_FP32 dims: 6 reshape { shape: [2, 2] } }',
    "a preferred batch above the largest": MODEL + "dynamic_batching { preferred_batch_size: 8 }",
    "no default priority": MODEL + "dynamic_batching { priority_levels: 2 }",
    "a cache of decoupled answers": MODEL
    + "response_cache { enable: true } model_transaction_policy { decoupled: true }",
    "a profile of no engine": MODEL + 'instance_group { kind: KIND_CPU profile: "0" }',
    "gpus of a group on a CPU": MODEL + "instance_group { kind: KIND_CPU gpus: 0 }",
    "an ensemble with instances": ENSEMBLE + "instance_group { kind: KIND_CPU }",
    "an ensemble that is optimized": ENSEMBLE + "optimization {}",
    "an ensemble without steps": ENSEMBLE.partition("ensemble_scheduling")[0] + "ensemble_scheduling {}",
    "an input that is not used": ENSEMBLE + 'input { name: "z" data_type: TYPE_FP32 dims: 1 }',
    "an output of no step": ENSEMBLE + 'output { name: "z" data_type: TYPE_FP32 dims: 1 }',
    "a model that is not there": ENSEMBLE.replace('model_name: "m"', 'model_name: "n"'),
    "a version that is not there": ENSEMBLE.replace("model_version: -1", ""),
    "an input that the model lacks": ENSEMBLE.replace('key: "x"', 'key: "u"'),
    "a batch above the model's": ENSEMBLE.replace("max_batch_size: 4", "max_batch_size: 8"),
    "a type that the model lacks": ENSEMBLE.replace('"x" data_type: TYPE_FP32', '"x" data_type: TYPE_INT64', 1),
}
"""Configurations that Triton refuses, each beside the model `m`."""
