"""The fields and types of Triton's ModelConfig, which a recipe writes under `package.triton` unchanged."""

# Source: model_config.proto of triton-inference-server/common, in the version of tritonclient 2.73. A test compares the
# two. This copy exists because a recipe must be readable without tritonclient.

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

_MESSAGES = {
    "ModelConfig": (
        "name=string platform=string backend=string runtime=string version_policy=ModelVersionPolicy "
        "max_batch_size=int32 input=[ModelInput] output=[ModelOutput] batch_input=[BatchInput] "
        "batch_output=[BatchOutput] optimization=ModelOptimizationPolicy dynamic_batching=ModelDynamicBatching "
        "sequence_batching=ModelSequenceBatching ensemble_scheduling=ModelEnsembling "
        "instance_group=[ModelInstanceGroup] default_model_filename=string cc_model_filenames={string:string} "
        "metric_tags={string:string} parameters={string:ModelParameter} model_warmup=[ModelWarmup] "
        "model_operations=ModelOperations model_transaction_policy=ModelTransactionPolicy "
        "model_repository_agents=ModelRepositoryAgents response_cache=ModelResponseCache "
        "model_metrics=ModelMetrics"
    ),
    "ModelVersionPolicy": (
        "latest=ModelVersionPolicy.Latest all=ModelVersionPolicy.All specific=ModelVersionPolicy.Specific"
    ),
    "ModelVersionPolicy.Latest": "num_versions=uint32",
    "ModelVersionPolicy.All": "",
    "ModelVersionPolicy.Specific": "versions=[int64]",
    "ModelInput": (
        "name=string data_type=DataType format=ModelInput.Format dims=[int64] reshape=ModelTensorReshape "
        "is_shape_tensor=bool allow_ragged_batch=bool optional=bool is_non_linear_format_io=bool"
    ),
    "ModelTensorReshape": "shape=[int64]",
    "ModelOutput": (
        "name=string data_type=DataType dims=[int64] reshape=ModelTensorReshape label_filename=string "
        "is_shape_tensor=bool is_non_linear_format_io=bool"
    ),
    "BatchInput": "kind=BatchInput.Kind target_name=[string] data_type=DataType source_input=[string]",
    "BatchOutput": "target_name=[string] kind=BatchOutput.Kind source_input=[string]",
    "ModelOptimizationPolicy": (
        "graph=ModelOptimizationPolicy.Graph priority=ModelOptimizationPolicy.ModelPriority "
        "cuda=ModelOptimizationPolicy.Cuda execution_accelerators=ModelOptimizationPolicy.ExecutionAccelerators "
        "input_pinned_memory=ModelOptimizationPolicy.PinnedMemoryBuffer "
        "output_pinned_memory=ModelOptimizationPolicy.PinnedMemoryBuffer gather_kernel_buffer_threshold=uint32 "
        "eager_batching=bool"
    ),
    "ModelOptimizationPolicy.Graph": "level=int32",
    "ModelOptimizationPolicy.Cuda": (
        "graphs=bool busy_wait_events=bool graph_spec=[ModelOptimizationPolicy.Cuda.GraphSpec] output_copy_stream=bool"
    ),
    "ModelOptimizationPolicy.Cuda.GraphSpec": (
        "batch_size=int32 input={string:ModelOptimizationPolicy.Cuda.GraphSpec.Shape} "
        "graph_lower_bound=ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound"
    ),
    "ModelOptimizationPolicy.Cuda.GraphSpec.Shape": "dim=[int64]",
    "ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound": (
        "batch_size=int32 input={string:ModelOptimizationPolicy.Cuda.GraphSpec.Shape}"
    ),
    "ModelOptimizationPolicy.ExecutionAccelerators": (
        "gpu_execution_accelerator=[ModelOptimizationPolicy.ExecutionAccelerators.Accelerator] "
        "cpu_execution_accelerator=[ModelOptimizationPolicy.ExecutionAccelerators.Accelerator]"
    ),
    "ModelOptimizationPolicy.ExecutionAccelerators.Accelerator": "name=string parameters={string:string}",
    "ModelOptimizationPolicy.PinnedMemoryBuffer": "enable=bool",
    "ModelDynamicBatching": (
        "preferred_batch_size=[int32] max_queue_delay_microseconds=uint64 preserve_ordering=bool "
        "priority_levels=uint64 default_priority_level=uint64 default_queue_policy=ModelQueuePolicy "
        "priority_queue_policy={uint64:ModelQueuePolicy}"
    ),
    "ModelQueuePolicy": (
        "timeout_action=ModelQueuePolicy.TimeoutAction default_timeout_microseconds=uint64 "
        "allow_timeout_override=bool max_queue_size=uint32"
    ),
    "ModelSequenceBatching": (
        "direct=ModelSequenceBatching.StrategyDirect oldest=ModelSequenceBatching.StrategyOldest "
        "max_sequence_idle_microseconds=uint64 control_input=[ModelSequenceBatching.ControlInput] "
        "state=[ModelSequenceBatching.State] iterative_sequence=bool"
    ),
    "ModelSequenceBatching.StrategyDirect": "max_queue_delay_microseconds=uint64 minimum_slot_utilization=float",
    "ModelSequenceBatching.StrategyOldest": (
        "max_candidate_sequences=int32 preferred_batch_size=[int32] max_queue_delay_microseconds=uint64 "
        "preserve_ordering=bool"
    ),
    "ModelSequenceBatching.ControlInput": "name=string control=[ModelSequenceBatching.Control]",
    "ModelSequenceBatching.Control": (
        "kind=ModelSequenceBatching.Control.Kind int32_false_true=[int32] fp32_false_true=[float] "
        "bool_false_true=[bool] data_type=DataType"
    ),
    "ModelSequenceBatching.State": (
        "input_name=string output_name=string data_type=DataType dims=[int64] "
        "initial_state=[ModelSequenceBatching.InitialState] use_same_buffer_for_input_output=bool "
        "use_growable_memory=bool"
    ),
    "ModelSequenceBatching.InitialState": "data_type=DataType dims=[int64] zero_data=bool data_file=string name=string",
    "ModelEnsembling": "step=[ModelEnsembling.Step] max_inflight_requests=uint32",
    "ModelEnsembling.Step": (
        "model_name=string model_version=int64 input_map={string:string} output_map={string:string} "
        "model_namespace=string"
    ),
    "ModelInstanceGroup": (
        "name=string kind=ModelInstanceGroup.Kind count=int32 rate_limiter=ModelRateLimiter gpus=[int32] "
        "secondary_devices=[ModelInstanceGroup.SecondaryDevice] profile=[string] passive=bool host_policy=string"
    ),
    "ModelRateLimiter": "resources=[ModelRateLimiter.Resource] priority=uint32",
    "ModelRateLimiter.Resource": "name=string global=bool count=uint32",
    "ModelInstanceGroup.SecondaryDevice": "kind=ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind device_id=int64",
    "ModelParameter": "string_value=string",
    "ModelWarmup": "name=string batch_size=uint32 inputs={string:ModelWarmup.Input} count=uint32",
    "ModelWarmup.Input": "data_type=DataType dims=[int64] zero_data=bool random_data=bool input_data_file=string",
    "ModelOperations": "op_library_filename=[string]",
    "ModelTransactionPolicy": "decoupled=bool",
    "ModelRepositoryAgents": "agents=[ModelRepositoryAgents.Agent]",
    "ModelRepositoryAgents.Agent": "name=string parameters={string:string}",
    "ModelResponseCache": "enable=bool",
    "ModelMetrics": "metric_control=[ModelMetrics.MetricControl]",
    "ModelMetrics.MetricControl": (
        "metric_identifier=ModelMetrics.MetricControl.MetricIdentifier "
        "histogram_options=ModelMetrics.MetricControl.HistogramOptions"
    ),
    "ModelMetrics.MetricControl.MetricIdentifier": "family=string",
    "ModelMetrics.MetricControl.HistogramOptions": "buckets=[double]",
}
_ENUMS = {
    "DataType": (
        "TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 TYPE_INT16 TYPE_INT32 "
        "TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16"
    ),
    "ModelInput.Format": "FORMAT_NONE FORMAT_NHWC FORMAT_NCHW",
    "BatchInput.Kind": (
        "BATCH_ELEMENT_COUNT BATCH_ACCUMULATED_ELEMENT_COUNT BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO "
        "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE BATCH_ITEM_SHAPE BATCH_ITEM_SHAPE_FLATTEN"
    ),
    "BatchOutput.Kind": "BATCH_SCATTER_WITH_INPUT_SHAPE",
    "ModelOptimizationPolicy.ModelPriority": "PRIORITY_DEFAULT PRIORITY_MAX PRIORITY_MIN",
    "ModelQueuePolicy.TimeoutAction": "REJECT DELAY",
    "ModelSequenceBatching.Control.Kind": (
        "CONTROL_SEQUENCE_START CONTROL_SEQUENCE_READY CONTROL_SEQUENCE_END CONTROL_SEQUENCE_CORRID"
    ),
    "ModelInstanceGroup.Kind": "KIND_AUTO KIND_GPU KIND_CPU KIND_MODEL",
    "ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind": "KIND_NVDLA",
}

MESSAGES: Mapping[str, Mapping[str, str]] = {
    message: dict(field.split("=") for field in fields.split()) for message, fields in _MESSAGES.items()
}
"""Name of a protobuf message of ModelConfig -> name of a field -> type of the field.

The type of a field is the name of a scalar, message or enum; `[TYPE]` is a list, and `{KEY:TYPE}` is a map.
"""
ENUMS: Mapping[str, tuple[str, ...]] = {name: tuple(values.split()) for name, values in _ENUMS.items()}
INTEGER_BOUNDS: Mapping[str, tuple[int, int]] = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
}
"""Name of an integer type of protobuf -> its least and its greatest number."""
ONE_OF: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "ModelConfig": (("dynamic_batching", "sequence_batching", "ensemble_scheduling"),),
    "ModelVersionPolicy": (("latest", "all", "specific"),),
    "ModelSequenceBatching": (("direct", "oldest"),),
    "ModelSequenceBatching.InitialState": (("zero_data", "data_file"),),
    "ModelWarmup.Input": (("zero_data", "random_data", "input_data_file"),),
}
"""A mapping from the name of a protobuf message to groups of fields that exclude each other.

A protobuf message may have a value in at most one field of each group.
"""
MODEL_CONFIG = tuple(MESSAGES["ModelConfig"])
OF_A_PYTHON_MODEL = frozenset({
    "name", "max_batch_size", "version_policy", "input", "output", "dynamic_batching", "instance_group", "metric_tags",
    "parameters", "response_cache",
})  # fmt: skip
"""The fields under `package.triton` that a package of one Python model follows; it has no others."""

PartName = Literal["tokenizer", "preprocess", "postprocess", "ensemble", "encoder", "decoder", "generate", "stream"]
"""The models that a package may hold beside the main model, by their names in `package.triton.models`."""
GraphPart = Literal["model", "encoder", "decoder"]
GRAPH_PARTS: tuple[GraphPart, ...] = get_args(GraphPart)
"""The parts of a package that are the built model: the single model, or the encoder and the decoder."""
