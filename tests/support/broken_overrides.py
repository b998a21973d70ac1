"""Overrides of Triton's configuration that are broken, each in one way."""

LAYERS = "name: tiny\nmodel: {source: layers.onnx}\nprofiles: [{batch: [1, 2, 8]}]\npackage: {triton: {%s}}\n"
WHOLE = "name: tiny\nmodel: {source: whole.onnx}\npackage: {triton: {%s}}\n"
TEXT = "name: tiny\nmodel: {source: model}\npackage: {triton: {%s}}\n"
NAMED = "name: tiny\nmodel: {source: model, task: %s}\npackage: {triton: {models: {%s}}}\n"
GPU = (
    "name: tiny\nmodel: {source: model}\ntarget: {device: T4, runtime: tensorrt}\n"
    "profiles: [{batch: [1, 8, 32], sequence: [1, 128, 256]}]\npackage: {triton: {%s}}\n"
)
CUDA = GPU.replace("runtime: tensorrt", "runtime: onnxruntime, provider: cuda")
WARM = "model_warmup: [{name: w, batch_size: 1, inputs: {x: {data_type: TYPE_FP32, dims: [64], zero_data: true}}}]"
WARM_ROW = WARM.replace("x:", "TEXT:").replace("TYPE_FP32", "TYPE_STRING").replace("[64]", "%s")
WARM_TEXT = (
    "model_warmup: [{name: w, batch_size: 1, inputs: {input_ids: {data_type: TYPE_INT64, dims: [%d], zero_data: true}, "
    "attention_mask: {data_type: TYPE_INT64, dims: %s, zero_data: true}}}]"
)

# The recipe, what is written under package.triton with » where it is wrong, what is said, and the hint.
REFUSED = {
    # What protobuf has no place for.
    "an unknown field": (LAYERS, "»dynamic_batchin: {}", "dynamic_batchin", "dynamic_batching"),
    "an unknown field inside": (
        LAYERS, "dynamic_batching: {»max_queue_delay: 5}", "unknown field `max_queue_delay` in `dynamic_batching`",
        "max_queue_delay_microseconds"),
    "an unknown field in a list": (
        LAYERS, "instance_group: [{count: 1}, {»knd: KIND_CPU}]", "unknown field `knd`", "`kind`?"),
    "an unknown field in a map": (
        LAYERS, "parameters: {a: {»string_valu: '1'}}", "unknown field `string_valu`", "`string_value`?"),
    "JSON's way to write a name": (
        LAYERS, "dynamic_batching: {»maxQueueDelayMicroseconds: 5}", "maxQueueDelay", "max_queue_delay_microseconds"),
    "text for a number": (
        LAYERS, "instance_group: [{count: »many}]", "`count` is the text 'many'; a whole number is meant", ""),
    "a fraction for a number": (LAYERS, "instance_group: [{count: »1.5}]", "a whole number is meant", ""),
    "a truth value for a number": (LAYERS, "instance_group: [{count: »true}]", "`count` is true; a whole", ""),
    "a number for text": (
        LAYERS, "parameters: {a: {string_value: »1}}", "`string_value` is 1; text is meant", 'quote it: "1"'),
    "a number for a truth value": (LAYERS, "response_cache: {enable: »1}", "true or false is meant", ""),
    "a plain parameter": (
        LAYERS, "parameters: {intra_op_thread_count: »'1'}", "a mapping of fields is meant", '{string_value: "1"}'),
    "parameters in a list": (LAYERS, "parameters: »[a]", "`parameters` is a list of 1; a mapping is meant", "{key: {"),
    "a group without its list": (
        LAYERS, "instance_group: »{count: 1}", "`instance_group` is a mapping; a list is meant", "[{...}]"),
    "one size without its list": (
        LAYERS, "dynamic_batching: {preferred_batch_size: »8}", "a list is meant", "[8]"),
    "a word for a message": (
        LAYERS, "version_policy: »latest", "a mapping of fields is meant", "version_policy: {latest: ...}"),
    "an unknown kind": (LAYERS, "instance_group: [{kind: »KIND_TPU}]", "cannot be the text 'KIND_TPU'", "KIND_GPU"),
    "half a name of a kind": (LAYERS, "instance_group: [{kind: »cpu}]", "`kind` cannot be", "did you mean KIND_CPU?"),
    "numpy's name of a type": (
        LAYERS, "input: [{name: x, data_type: »float32, dims: [64]}]", "`data_type` cannot be", "TYPE_FP32?"),
    "KServe's name of a type": (
        LAYERS, "input: [{name: x, data_type: »BYTES, dims: [64]}]", "`data_type` cannot be", "TYPE_STRING?"),
    "a negative delay": (
        LAYERS, "dynamic_batching: {max_queue_delay_microseconds: »-1}", "is -1; at least 0 is meant", ""),
    "a negative queue": (
        LAYERS, "dynamic_batching: {default_queue_policy: {max_queue_size: »-5}}", "at least 0 is meant", ""),
    "a number too large": (
        LAYERS, "instance_group: [{count: »3000000000}]", "at most 2,147,483,647 is meant (int32)", ""),
    "null in a list": (LAYERS, "instance_group: [»null]", "is null; a mapping of fields is meant", ""),
    "two schedulers": (
        LAYERS, "dynamic_batching: {}, »sequence_batching: {}", "exclude each other", "leave one out"),
    "two policies": (
        LAYERS, "version_policy: {all: {}, »latest: {num_versions: 1}}", "`latest` and `all` exclude", "leave one out"),
    # Tensors that the model does not have.
    "an unknown input": (
        LAYERS, "input: [{name: »z, data_type: TYPE_FP32, dims: [64]}]", "the model has no input 'z'", "x"),
    "an unknown output": (
        LAYERS, "output: [{name: »logits, data_type: TYPE_FP32, dims: [4]}]", "no output 'logits'", "y"),
    "another type": (
        LAYERS, "input: [{name: x, data_type: »TYPE_FP16, dims: [64]}]", "is TYPE_FP32 in the model, not TYPE_FP16",
        "use TYPE_FP32"),
    "another type of an output": (
        LAYERS, "output: [{name: y, data_type: »TYPE_INT64, dims: [4]}]", "is TYPE_FP32 in the model", "TYPE_FP32"),
    "other dims": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: »[32]}]", "cannot be [32]: the model has [64]", "[64]"),
    "free dims of a fixed axis": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: »[-1]}]", "cannot be [-1]: the model has [64]", "[64]"),
    "the batch twice": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: »[-1, 64]}]", "has the batch in its dims", "use [64]"),
    "no such dimension": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [»-2]}]", "`dims[0]` is -2; at least 1", "any size"),
    "a dimension of nothing": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [»0]}]", "`dims[0]` is 0; at least 1", "any size"),
    "no dims": (LAYERS, "input: [»{name: x, data_type: TYPE_FP32}]", "`dims` is missing", "dims: [-1]"),
    "no type": (LAYERS, "input: [»{name: x, dims: [64]}]", "`data_type` is missing", "TYPE_FP32"),
    "no name": (LAYERS, "input: [»{data_type: TYPE_FP32, dims: [64]}]", "`name` is missing", "name: "),
    "no inputs": (LAYERS, "input: »[]", "`input` is an empty list", "leave it out"),
    "inputs taken out": (LAYERS, "»input: null", "takes out what the package needs", "leave it out"),
    "an input twice": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [64]}, {name: »x, data_type: TYPE_FP32, dims: [64]}]",
        "listed twice", "leave one out"),
    "a missing input": (
        TEXT, "input: »[{name: input_ids, data_type: TYPE_INT64, dims: [-1]}]", "'attention_mask' is missing",
        "leave `input` out"),
    "tokens as int32": (
        TEXT, "input: [{name: input_ids, data_type: »TYPE_INT32, dims: [-1]}]", "is TYPE_INT64 in", "TYPE_INT64"),
    "an optional input": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [64], optional: »true}]", "computes nothing", "leave"),
    "ragged rows": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [64], allow_ragged_batch: »true}]", "the joined rows",
        "leave it out"),
    "a reshape of another size": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [8, 9], reshape: »{shape: [64]}}]",
        "different numbers of elements", "the same"),
    "a reshape to another shape": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [64], reshape: »{shape: [8, 8]}}]", "cannot be [8, 8]",
        "[64]"),
    "a layout of images": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [64], format: »FORMAT_NHWC}]", "about images", "leave"),
    "a shape tensor": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [64], is_shape_tensor: »true}]", "TensorRT", "leave"),
    "labels from a file": (
        LAYERS, "output: [{name: y, data_type: TYPE_FP32, dims: [4], label_filename: »labels.txt}]", "no such file",
        "leave it out"),
    "a made input from nowhere": (
        LAYERS, ("batch_input: [{kind: BATCH_ELEMENT_COUNT, target_name: [x], data_type: TYPE_INT32, "
        "source_input: [»z]}]"), "no input 'z'", "x"),
    "a made input of int64": (
        LAYERS, ("batch_input: [{kind: BATCH_ELEMENT_COUNT, target_name: [x], data_type: »TYPE_INT64, "
        "source_input: [x]}]"), "TYPE_INT32 or TYPE_FP32", "data_type"),
    # Batches and how requests wait.
    "a batch beyond the profile": (LAYERS, "max_batch_size: »16", "batches of 16", "max_batch_size: 8"),
    "a preferred batch beyond the profile": (
        LAYERS, "dynamic_batching: {preferred_batch_size: [4, »16]}", "a preferred batch of 16", "profiles"),
    "a preferred batch beyond the largest": (
        LAYERS, "max_batch_size: 4, dynamic_batching: {preferred_batch_size: [»8]}", "max_batch_size is 4", "lower"),
    "a preferred batch of none": (
        LAYERS, "dynamic_batching: {preferred_batch_size: [»0]}", "`preferred_batch_size[0]` is 0; at least", ""),
    "batches of a model without": (WHOLE, "»dynamic_batching: {}", "takes no batches", "leave it out"),
    "a largest batch of a model without": (
        WHOLE, "max_batch_size: »4", "first axis", "max_batch_size: 0"),
    "batches that are switched off": (
        LAYERS, "max_batch_size: 0, »dynamic_batching: {}", "takes no batches", "leave it out"),
    "a default priority that is not there": (
        LAYERS, "dynamic_batching: {priority_levels: 2, default_priority_level: »3}", "levels 1 to 2", "1 to 2"),
    "no default priority": (
        LAYERS, "dynamic_batching: {priority_levels: »2}", "`default_priority_level` is missing", "1 to 2"),
    "a default priority alone": (
        LAYERS, "dynamic_batching: {default_priority_level: »1}", "is 1: `priority_levels` does not", "how many"),
    "a policy for a priority that is not there": (
        LAYERS, "dynamic_batching: {priority_levels: 2, default_priority_level: 1, priority_queue_policy: {»'5': {}}}",
        "no request has the priority 5", "1 to 2"),
    "order among priorities": (
        LAYERS, "dynamic_batching: {priority_levels: 2, default_priority_level: 1, preserve_ordering: »true}",
        "could not come first", "leave one"),
    "order among those that wait longer": (
        LAYERS, "dynamic_batching: {preserve_ordering: true, default_queue_policy: {timeout_action: »DELAY}}",
        "could not come last", "REJECT"),
    "more than all slots": (
        LAYERS, "sequence_batching: {direct: {minimum_slot_utilization: »2.0}}", "is 2; at most 1 is meant", ""),
    "a control that the model lacks": (
        LAYERS, "sequence_batching: {control_input: [{name: »START, control: [{int32_false_true: [0, 1]}]}]}",
        "no input 'START'", "x"),
    "half a control": (
        TEXT, "sequence_batching: {control_input: [{name: input_ids, control: [{int32_false_true: »[0]}]}]}",
        "has 1 values", "[0, 1]"),
    "a state that the model lacks": (
        LAYERS, "sequence_batching: {state: [{input_name: »past, output_name: y}]}", "no input 'past'", "x"),
    "a state from a file": (
        LAYERS, "sequence_batching: {state: [{input_name: x, output_name: y, initial_state: [{data_file: »s}]}]}",
        "no file 's'", "zero_data"),
    "pieces of one answer": (
        LAYERS, "model_transaction_policy: {decoupled: »true}", "gives one answer", "leave it out"),
    # Where instances run.
    "a GPU on a cpu": (LAYERS, "instance_group: [{kind: »KIND_GPU}]", "this package is for a cpu", "KIND_CPU"),
    "a numbered GPU on a cpu": (LAYERS, "instance_group: [{gpus: »[0]}]", "this package is for a cpu", "leave"),
    "a tokenizer on a GPU that is not there": (
        TEXT, "models: {tokenizer: {instance_group: [{kind: »KIND_GPU}]}}", "this package is for a cpu", "KIND_CPU"),
    "a cpu on a GPU": (GPU, "instance_group: [{kind: »KIND_CPU}]", "this package is for a GPU", "KIND_GPU"),
    "a kind of the model's own on a GPU": (GPU, "instance_group: [{kind: »KIND_MODEL}]", "is for a GPU", "KIND_GPU"),
    "no instances": (LAYERS, "instance_group: [{count: »0}]", "`count` is 0; at least 1 is", "of its own"),
    "less than no instances": (LAYERS, "instance_group: [{count: »-1}]", "`count` is -1; at least", "of its own"),
    "only passive instances": (LAYERS, "instance_group: [{passive: »true}]", "nothing would answer", "active"),
    "a GPU below zero": (GPU, "instance_group: [{gpus: [»-1]}]", "`gpus[0]` is -1; at least 0 is meant", ""),
    "a GPU twice": (GPU, "instance_group: [{gpus: [0, »0]}]", "0 is listed twice in `gpus`", "leave one"),
    "profiles of ONNX Runtime": (LAYERS, "instance_group: [{profile: »['0']}]", "TensorRT's", "leave it out"),
    "a profile that is not there": (GPU, "instance_group: [{profile: [»'1']}]", "no profile 1", "leave it out"),
    "a profile without a number": (GPU, "instance_group: [{profile: [»large]}]", "'large' is none", '["0", "1"]'),
    "an accelerator's cores": (
        LAYERS, "instance_group: [{secondary_devices: »[{kind: KIND_NVDLA}]}]", "deep-learning", "leave them out"),
    "a nameless resource": (
        LAYERS, "instance_group: [{rate_limiter: {resources: [»{count: 1}]}}]", "`name` is missing", "name: "),
    # What the backends make of it.
    "TensorRT on a cpu": (
        LAYERS, "optimization: {execution_accelerators: {gpu_execution_accelerator: [»{name: tensorrt}]}}",
        "this package is for a cpu", "openvino"),
    "an unknown accelerator": (
        LAYERS, "optimization: {execution_accelerators: {cpu_execution_accelerator: [{name: »openvin}]}}",
        "no accelerator 'openvin'", "openvino"),
    "TensorRT behind a provider that was measured": (
        CUDA, "optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: »tensorrt}]}}",
        "validated and measured without it", "provider: tensorrt"),
    "an accelerator of an engine": (
        GPU, "optimization: {execution_accelerators: {gpu_execution_accelerator: [»{name: tensorrt}]}}",
        "it would be ignored", "leave it out"),
    "CUDA graphs on a cpu": (LAYERS, "optimization: {»cuda: {graphs: true}}", "is for a cpu", "leave it out"),
    "CUDA graphs through a provider": (CUDA, "optimization: {»cuda: {graphs: true}}", "about TensorRT", "runtime: ten"),
    "a CUDA graph beyond the profile": (
        GPU, "optimization: {cuda: {graphs: true, graph_spec: [{batch_size: »64}]}}", "a CUDA graph of batch 64", "32"),
    "a field of Triton for TensorRT-RTX": (
        GPU.replace("T4, runtime: tensorrt", "L4, runtime: tensorrt-rtx"), "»instance_group: [{count: 2}]",
        "the package is no Triton repository", "leave it out"),
    "CUDA graphs that were measured and are not served": (
        GPU + "tensorrt: {cuda_graph: true}\n", "optimization: {cuda: {graphs: »false}}", "was measured with",
        "leave one of the two out"),
    "a CUDA graph of a model without batches": (
        GPU, "max_batch_size: 0, optimization: {cuda: {graphs: true, graph_spec: [{batch_size: »8}]}}",
        "a CUDA graph of batch 8", "max_batch_size is 0"),
    "a CUDA graph that nothing captures": (
        GPU, "optimization: {cuda: {»graph_spec: [{batch_size: 8}]}}", "captures no CUDA graph", "graphs: true"),
    "a CUDA graph of no rows": (
        GPU, "max_batch_size: 8, optimization: {cuda: {graphs: true, graph_spec: [{batch_size: »0}]}}",
        "a CUDA graph of no rows", "batch_size: 1"),
    "a lower bound of no rows": (
        GPU, ("max_batch_size: 8, optimization: {cuda: {graphs: true, graph_spec: "
        "[{batch_size: 4, graph_lower_bound: »{}}]}}"), "a CUDA graph of no rows", "up to 8"),
    "a CUDA graph of fewer rows than its lower bound": (
        GPU, ("optimization: {cuda: {graphs: true, graph_spec: "
        "[{batch_size: 4, graph_lower_bound: {batch_size: »8}}]}}"), "8 rows, and the graph 4", "the smaller one"),
    "a CUDA graph without the shape of an input": (
        GPU, ("optimization: {cuda: {graphs: true, graph_spec: "
        "[{batch_size: 4, input: »{input_ids: {dim: [128]}}}]}}"), "'attention_mask' is missing", "leave `input` out"),
    "a CUDA graph of any length": (
        GPU, ("optimization: {cuda: {graphs: true, graph_spec: "
        "[{batch_size: 4, input: {input_ids: {dim: [»-1]}}}]}}"), "at least 0 is meant", "dim: [128]"),
    "a lower bound without a shape": (
        GPU, ("optimization: {cuda: {graphs: true, graph_spec: [{batch_size: 4, input: {input_ids: {dim: [128]}}, "
        "graph_lower_bound: »{batch_size: 1}}]}}"), "no shape of 'input_ids' like the graph's [128]", "under input"),
    "a lower bound that is longer": (
        GPU, ("optimization: {cuda: {graphs: true, graph_spec: [{batch_size: 4, input: {input_ids: {dim: [128]}}, "
        "graph_lower_bound: {batch_size: 1, input: {input_ids: »{dim: [256]}}}}]}}"), "is [256], and the graph's shape",
        "the smaller one"),
    "a level that is none": (LAYERS, "optimization: {graph: {level: »7}}", "`level` is 7; at most 2", "-1 (basic)"),
    "a level of an engine": (GPU, "optimization: {graph: {level: »1}}", "about ONNX Runtime", "leave it out"),
    "threads in words": (
        LAYERS, "parameters: {intra_op_thread_count: {string_value: »four}}", "a whole number", '"1"'),
    "fewer threads than none": (
        LAYERS, "parameters: {intra_op_thread_count: {string_value: »'-1'}}", "a whole number from 0", '"1"'),
    "a mode in words": (LAYERS, "parameters: {execution_mode: {string_value: »parallel}}", "a whole number from 0", ""),
    "a parameter without its value": (LAYERS, "parameters: {a: »{}}", "has no value", "string_value"),
    "buckets that fall": (
        LAYERS, ("model_metrics: {metric_control: [{metric_identifier: {family: f}, "
        "histogram_options: {buckets: »[2.0, 1.0]}}]}"), "do not rise", "sort"),
    "metrics that the image does not know": (
        LAYERS, "image: '24.10', »model_metrics: {}", "24.10 has no `model_metrics` yet", "an image of 24.11 or later"),
    "a limit that the image does not know": (
        TEXT, "image: '25.06', models: {ensemble: {ensemble_scheduling: {»max_inflight_requests: 8}}}",
        "25.06 has no `max_inflight_requests` yet", "an image of 25.11 or later"),
    "a type that the image does not know": (
        LAYERS, "image: '22.04', input: [{name: x, data_type: »TYPE_BF16, dims: [64]}]",
        "22.04 has no `TYPE_BF16` yet", "an image of 22.05 or later"),
    "a cache of sequences": (
        LAYERS, "sequence_batching: {}, response_cache: {enable: »true}", "no answers of sequences", "leave it out"),
    # What a package has decided.
    "another platform": (LAYERS, "platform: »tensorrt_plan", "it is 'onnxruntime_onnx'", "`target`"),
    "another backend": (LAYERS, "backend: »python", "it is 'onnxruntime'", "`target`"),
    "another runtime": (LAYERS, "runtime: »libtriton_mine.so", "it has none", "`target`"),
    "another file": (LAYERS, "default_model_filename: »best.onnx", "it is 'model.onnx'", "leave it out"),
    "a file by compute capability": (LAYERS, "»cc_model_filenames: {'7.5': t4.plan}", "does not have: 't4.plan'", ""),
    "a library of operators": (LAYERS, "»model_operations: {op_library_filename: [a.so]}", "does not have", "leave"),
    "an ensemble inside the model": (LAYERS, "»ensemble_scheduling: {step: []}", "which is no ensemble", "leave"),
    "the ensemble's steps": (
        TEXT, "models: {ensemble: {ensemble_scheduling: {»step: []}}}", "how the package fits", "tokenizer: false"),
    "a version that is not there": (
        LAYERS, "version_policy: {specific: {versions: [1, »2]}}", "`versions[1]` is 2; at most 1", "version 1 alone"),
    "no version": (LAYERS, "version_policy: {specific: »{}}", "`versions` is missing", "versions: [1]"),
    "the latest none": (LAYERS, "version_policy: {latest: »{}}", "`num_versions` is missing", "num_versions: 1"),
    # Warm-up.
    "a warm-up of an unknown input": (LAYERS, WARM.replace("x:", "»z:"), "no input 'z'", "x"),
    "a warm-up of another type": (LAYERS, WARM.replace("TYPE_FP32", "»TYPE_INT64"), "is TYPE_FP32", "TYPE_FP32"),
    "a warm-up of other dims": (LAYERS, WARM.replace("[64]", "»[65]"), "cannot be [65]", "each dimension"),
    "a warm-up of any dims": (LAYERS, WARM.replace("[64]", "[»-1]"), "at least 1 is meant", "whole sizes"),
    "a warm-up beyond the profile": (LAYERS, WARM.replace("batch_size: 1", "batch_size: »9"), "batch 9", "at most 8"),
    "a warm-up of no rows": (LAYERS, WARM.replace("batch_size: 1", "batch_size: »0"), "skip it", "batch_size: 1"),
    "a warm-up without data": (
        LAYERS, WARM.replace(", zero_data: true", "").replace("{data", "»{data"), "has no data", "zero_data"),
    "a warm-up of no zeros": (LAYERS, WARM.replace("zero_data: true", "zero_data: »false"), "is no data", "true is"),
    "a warm-up from two sources": (
        LAYERS, WARM.replace("zero_data: true", "zero_data: true, »random_data: true"), "exclude each other", "leave"),
    "a warm-up from a file that is not there": (
        LAYERS, WARM.replace("zero_data: true", "input_data_file: »none.bin"),
        "`input_data_file` names", "no name like it"),
    "a warm-up from the web": (
        LAYERS, WARM.replace("zero_data: true", "input_data_file: »https://x.example/a.bin"),
        "cannot be read from https:", "name a path"),
    "a warm-up without a name": (LAYERS, WARM.replace("{name: w, ", "»{"), "`name` is missing", "name: "),
    "two warm-ups of a name": (
        LAYERS, WARM[:-1] + ", " + WARM.partition("[")[2].replace("{name: ", "{name: »", 1), "'w' is listed twice",
        "name it otherwise"),
    "a warm-up that lacks an input": (
        TEXT, ("model_warmup: [»{name: w, batch_size: 1, inputs: {input_ids: "
        "{data_type: TYPE_INT64, dims: [8], zero_data: true}}}]"), "'attention_mask' is missing", "add it"),
    "a warm-up of rows of two lengths": (
        TEXT, WARM_TEXT % (16, "»[8]"), "sequence is 8 in 'attention_mask' and 16 in 'input_ids'", "the same"),
    "a warm-up of rows that no profile takes": (
        TEXT, WARM_TEXT.replace("[%d]", "»[%d]") % (600, "[600]"), "the profiles take 1 to", "widen a"),
    "a CUDA graph of rows that no profile takes": (
        GPU, ("optimization: {cuda: {graphs: true, graph_spec: [{batch_size: 2, "
        "input: {input_ids: {dim: »[512]}, attention_mask: {dim: [512]}}}]}}"),
        "the profiles take 1 to 256", "widen"),
    "inputs of two lengths": (
        TEXT, ("input: [{name: input_ids, data_type: TYPE_INT64, dims: [16]}, "
        "{name: attention_mask, data_type: TYPE_INT64, dims: »[32]}]"), "the model has one for both", "the same"),
    "a warm-up of seven texts": (
        TEXT, "models: {tokenizer: {" + WARM_ROW % "»[7]" + "}}", "one text, or two that belong", "[2] for pairs"),
    "a warm-up of what asks the graphs": (
        NAMED % ("text-generation", "%s"), "stream: {»" + WARM_ROW % "[1]" + "}", "cannot be warmed up", "the graphs"),
    "seven texts a row": (
        TEXT, "models: {ensemble: {input: [{name: TEXT, data_type: TYPE_STRING, dims: »[7]}]}}", "7 texts", "[1]"),
    # Parts of a package.
    "an unknown part": (TEXT, "models: {»tokenzier: {}}", "unknown field `tokenzier`", "tokenizer"),
    "a part that the task does not have": (
        NAMED % ("text-classification", "%s"), "»decoder: {}", "for text-classification has no model `decoder`", ""),
    "a tokenizer that is left out": (
        TEXT, "tokenizer: false, models: {»tokenizer: {parameters: {}}}", "tokenizer: false", "leave one"),
    "instances of an ensemble": (
        TEXT, "models: {ensemble: {»instance_group: [{count: 2}]}}", "an ensemble has no", "made of"),
    "a tokenizer of larger batches": (
        LAYERS, "models: {tokenizer: {max_batch_size: »9}}", "is made for at most 8", "package.triton.max_batch_size"),
    "batches of an ensemble": (TEXT, "models: {ensemble: {»dynamic_batching: {}}}", "an ensemble has no", "made of"),
    "an optimized ensemble": (
        TEXT, "models: {ensemble: {»optimization: {priority: PRIORITY_MAX}}}", "an ensemble has no", "made of"),
    "a warm ensemble": (TEXT, "models: {ensemble: {»model_warmup: []}}", "an ensemble has no", "made of"),
    "a tokenizer on ONNX Runtime": (
        TEXT, "models: {tokenizer: {backend: »onnxruntime}}", "it is 'python'", "leave it out"),
    "a tokenizer of sequences": (
        TEXT, "models: {tokenizer: {»sequence_batching: {}}}", "belong to no sequence", "leave it out"),
    "a cache of pieces": (
        NAMED % ("text-generation", "%s"), "stream: {response_cache: {enable: »true}}", "caches no answers", "leave"),
    "a stream in one piece": (
        NAMED % ("text-generation", "%s"), "stream: {model_transaction_policy: {decoupled: »false}}", "in pieces", ""),
}  # fmt: skip
