"""Descriptions and examples of a recipe's fields, which editors show; `recipe schema` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TRITON = "https://github.com/triton-inference-server/common/blob/main/protobuf/model_config.proto"


@dataclass(frozen=True)
class FieldMeaning:
    """What a field means, and values that it may have."""

    text: str
    examples: tuple[Any, ...] = ()


def _about(text: str, *examples: Any) -> FieldMeaning:
    return FieldMeaning(text, examples)


FIELDS: Mapping[str, Mapping[str, FieldMeaning]] = {
    "": {
        "name": _about(
            "The name of the package, build/NAME. With a matrix a template.", "minilm", "minilm-${precision}"
        ),
        "model": _about("The model that is built.", {"source": "hf:OWNER/NAME"}),
        "target": _about(
            "The hardware and the software that the package is for.", {"device": "T4", "runtime": "tensorrt"}
        ),
        "precision": _about("The number format in which the device computes. By default fp32.", "fp16", "int8"),
        "tf32": _about("Whether a GPU may compute products of fp32 in TF32. By default as each runtime does."),
        "profiles": _about(
            "Shapes of the inputs: minimum, optimum and maximum of each axis, or one size; and the values"
            " of inputs that are sizes of other tensors.",
            [{"batch": [1, 8, 32], "sequence": [1, 128, 512]}],
            [{"batch": [1, 4, 8], "target": [[1, 16], [4, 16], [8, 16]]}],
        ),
        "tensorrt": _about("Options of TensorRT's builder.", {"memory_pool": {"workspace": "2GiB"}}),
        "calibrate": _about("Samples from which low precisions take their scales.", {"samples": "train.jsonl"}),
        "validate": _about("What is compared with the original model, and the bounds.", {"samples": "samples.jsonl"}),
        "bench": _about("What is measured, and against what.", {"against": [{"runtime": "pytorch"}]}),
        "package": _about("The package that the build writes.", {"triton": {"name": "minilm"}}),
        "graphs": _about("Other values for one graph of a model of several.", {"decoder": {"precision": "fp32"}}),
        "quantize": _about("How a precision is lowered, and which layers keep theirs.", {"weights_only": True}),
        "generate": _about("How a model generates text.", {"max_new_tokens": 64}),
        "postprocess": _about(
            "How a package makes answers of an .onnx file's outputs.", "softmax", {"boxes": {"layout": "yolov8"}}
        ),
        "preprocess": _about("How image files become tensors.", {"size": 224}),
        "policy": _about("What may be packaged at all.", {"licenses": ["apache-2.0", "mit"]}),
        "hermetic": _about("Whether a job fails that reads anything which no row of its key covers."),
        "runtimes": _about("Options of runtimes from other packages, by the name of the runtime."),
        "steps": _about("Options of steps from other packages, by the name of the step."),
        "tune": _about(
            "What `recipe tune` searches for; a build does not read it.",
            {"minimize": {"p95_ms": {"batch": 1, "sequence": 128}}, "subject_to": {"cosine": 0.99}, "trials": 40},
        ),
        "extends": _about("The path of the parent recipe, whose fields are taken over.", "base.yaml"),
        "abstract": _about("Whether other recipes extend the file, which makes no package of its own."),
        "recipe": _about("The version of the recipe language.", 1),
        "matrix": _about(
            "Paths of fields, as target.device, each with a list of values. Each combination is a variant.",
            {"precision": ["fp32", "int8"]},
        ),
    },
    "matrix": {
        "include": _about("Further combinations.", [{"precision": "fp16", "target.device": "T4"}]),
        "exclude": _about("Combinations that are left out.", [{"precision": "fp8", "target.device": "T4"}]),
    },
    "ModelSection": {
        "source": _about(
            "Where the model is: a directory, an .onnx file, a repository of the hub, timm's or a package's.",
            "hf:OWNER/NAME",
            "path/to/model",
            "model.onnx",
            "timm:resnet18.a1_in1k",
            "python:PACKAGE/path",
        ),
        "revision": _about("A branch, tag or commit on the hub. By default main.", "main", "v1.0"),
        "task": _about("What the model is for. By default what its config says.", "text-classification"),
        "tokenizer": _about(
            "The place of a tokenizer, for an .onnx file or in place of the model's own.", "hf:OWNER/NAME"
        ),
        "weights": _about("The kind of weights that are read. By default safetensors.", "safetensors"),
        "library": _about("The library that loads the checkpoint, if it is not transformers.", "timm"),
        "num_labels": _about("The number of labels of a random head, with random_head: true.", 2),
        "random_head": _about("Whether a head that the checkpoint lacks is drawn at random, with num_labels."),
        "prompt": _about(
            "The name of a prompt of a sentence-transformers model, which is put in front of each text.", "query"
        ),
        "truncate_dim": _about("How many numbers of a sentence embedding are kept. By default as the model says.", 256),
        "labels": _about(
            "The names of the classes of an .onnx file, or a zero-shot classifier's texts.", ["cat", "dog"]
        ),
        "trust_remote_code": _about("Not supported: code of a model never runs."),
    },
    "Target": {
        "device": _about("cpu, or a GPU as `recipe gpus` lists it. By default cpu.", "cpu", "T4", "RTX 4090"),
        "runtime": _about("What executes the model. By default onnxruntime.", "onnxruntime", "tensorrt", "auto"),
        "provider": _about("The execution provider of ONNX Runtime. By default cpu.", "cuda"),
        "isa": _about("The instructions of a CPU that is older than this machine's.", "avx2"),
    },
    "TensorRT": {
        "version": _about("The version of TensorRT that builds the engine.", "10.x", "10.9"),
        "memory_pool": _about("The upper limit of each memory pool of the builder.", {"workspace": "2GiB"}),
        "optimization_level": _about(
            "How long the builder searches for fast kernels, 0 to 5. TensorRT's default is 3.", 5
        ),
        "compatibility": _about("On which other GPUs the engine runs. By default none.", "ampere-plus"),
        "version_compatible": _about("Whether the engine runs in later versions of the same major version."),
        "exclude_lean_runtime": _about("Whether a version-compatible engine leaves its own runtime out."),
        "cuda_graph": _about("Whether the engine is measured and served through a CUDA graph."),
        "tiling_optimization_level": _about("How long the builder searches for tilings.", "fast"),
        "profiling_verbosity": _about("What an engine says of its layers. By default detailed.", "detailed"),
        "max_aux_streams": _about("The most streams beside the main one.", 4),
        "avg_timing_iterations": _about("How often a kernel is timed.", 8),
        "timing_cache": _about("A file with kernel timings. By default the store's own.", "timing.cache"),
        "plugins": _about("Libraries with further operators, which the package ships.", ["libplugins.so"]),
        "refit": _about("Whether your own program can replace the weights of the engine. No step replaces them."),
        "strip_plan": _about("Whether the engine is written without weights."),
        "weight_streaming": _about("Whether weights may stay in the memory of the host."),
        "sparse_weights": _about("Whether kernels for weights with the pattern 2:4 may be used."),
    },
    "Calibration": {
        "samples": _about("A .jsonl or .npz file. Use others than those of validate.", "samples/train.jsonl"),
        "limit": _about("The most samples that are read. By default 256.", 256),
    },
    "Validation": {
        "samples": _about(
            "A .jsonl or .npz file with inputs. By default built-in texts or random tensors.", "samples/test.jsonl"
        ),
        "cosine": _about("The least cosine to the original's outputs, -1 to 1.", 0.99, {"at_least": 0.99}),
        "agreement": _about("The least share of samples with the same answer, 0 to 1.", 0.98),
        "max_abs": _about("The greatest difference of an output.", 0.05, {"at_most": 0.05}),
        "variation": _about("The least share of the original's variation that outputs explain, at most 1.", 0.9),
        "rank": _about("The least correlation of ranks with the original, -1 to 1.", 0.99),
        "in_batch": _about("The least likeness of a row in a batch to the row alone, -1 to 1.", 0.98),
        "precision_share": _about("The least share of the work in the recipe's precision, 0 to 1.", 0.5),
        "perplexity": _about("The perplexity on a text, for models that generate text.", {"text": "corpus.txt"}),
        "metric": _about("A metric on labelled samples.", {"name": "accuracy", "at_least": 0.9}),
    },
    "PerplexityOnText": {
        "text": _about("A file of plain text in UTF-8.", "corpus.txt"),
        "at_most": _about("The greatest ratio of the built model's perplexity to the original's.", 1.05),
        "limit": _about("The most tokens that are read. By default 4096.", 4096),
    },
    "Bound": {
        "at_least": _about("The least value that passes.", 0.99),
        "at_most": _about("The greatest value that passes.", 0.05),
    },
    "Metric": {
        "at_least": _about("The least value that passes.", 0.9),
        "at_most": _about("The greatest value that passes."),
        "name": _about("The metric. By default accuracy.", "accuracy"),
    },
    "Bench": {
        "shapes": _about(
            "The shapes to measure. By default the optimum of each profile.",
            [{"batch": 1, "sequence": 16, "budget": {"p95_ms": 5}}],
        ),
        "samples": _about("The texts that `sequence: samples` means. By default those of validate.", "users.jsonl"),
        "via": _about("How models are called. By default in-process.", ["in-process", "triton-grpc"]),
        "against": _about("What you would otherwise run, measured in turns.", [{"runtime": "pytorch"}]),
        "threads": _about("The threads of every contender. By default the physical cores.", 1),
    },
    "Shape": {"budget": _about("The greatest latencies of this shape in milliseconds.", {"p95_ms": 5})},
    "Rival": {
        "runtime": _about("What executes the original model.", "pytorch"),
        "precision": _about("The precision of the rival. By default fp32; tf32 on GPUs that have it.", "fp16"),
        "compile": _about("The mode of torch.compile. By default PyTorch is not compiled.", "default"),
    },
    "Range": {
        "min": _about("The smallest size.", 1),
        "opt": _about("The usual size, for which the model is tuned.", 16),
        "max": _about("The largest size.", 128),
    },
    "Values": {
        "min": _about("The smallest of each value.", [1, 16]),
        "opt": _about("The usual values, for which the model is tuned.", [4, 16]),
        "max": _about("The largest of each value.", [8, 16]),
    },
    "Graph": {
        "precision": _about("The precision of this graph. By default the recipe's.", "fp32"),
        "profiles": _about("The profiles of this graph. By default the recipe's.", [{"batch": [1, 1, 8]}]),
    },
    "Quantization": {
        "weights_only": _about("Whether a CPU has low precision in the weights alone."),
        "keep_in": _about("Layers that stay in a higher precision.", {"fp32": ["encoder.layer.0"]}),
    },
    "KeepIn": {
        "fp32": _about(
            "Layers that stay in fp32: modules of the original model, or nodes of an ONNX file; `*` is any text.",
            ["encoder.layer.0", "encoder.layer.*.output.dense"],
        ),
        "fp16": _about("Layers that stay in fp16, for int8, fp8 and int4 on a GPU.", ["encoder.layer.0"]),
    },
    "Tune": {
        "budget": _about("The seconds of all jobs of the search, by their records.", "10m"),
        "trials": _about("The number of trials. By default 40, without a budget.", 40),
        "minimize": _about(
            "The figure that shall be small: size, p50_ms, p95_ms or p99_ms, at sizes of the inputs.",
            {"p95_ms": {"batch": 1, "sequence": 128}},
            "size",
        ),
        "maximize": _about("The figure that shall be large: rows per second.", "throughput"),
        "subject_to": _about("The bounds that the result keeps.", {"cosine": 0.99, "p95_ms": 20}),
        "over": _about(
            "Paths of fields, each with the values to try. By default what the runtimes of the target offer.",
            {"target.runtime": ["onnxruntime", "openvino"], "precision": ["fp32", "int8"]},
        ),
    },
    "TuneBounds": {
        "cosine": _about("The least cosine to the original's outputs, of the worst sample, -1 to 1.", 0.99),
        "agreement": _about("The least share of samples with the same answer, 0 to 1.", 0.98),
        "rank": _about("The least correlation of ranks with the original, -1 to 1.", 0.99),
        "metric": _about("The least accuracy on labelled samples, 0 to 1.", 0.9),
        "p50_ms": _about("The greatest median latency in milliseconds.", 10),
        "p95_ms": _about("The greatest p95 in milliseconds.", 20),
        "p99_ms": _about("The greatest p99 in milliseconds.", 30),
        "size": _about("The greatest size of the built model.", "40MB"),
    },
    "Generate": {
        "max_new_tokens": _about("The largest number of tokens in an answer.", 64),
        "num_beams": _about("1: greedy generation. No other value is supported.", 1),
    },
    "Preprocess": {
        "layout": _about("The order of the axes of an image. By default NCHW.", "NHWC"),
        "size": _about("The pixels on each side, or before the crop. By default the model's own.", 224),
        "crop": _about("The pixels on each side of the centre that is kept.", 224),
        "fit": _about("How images of another shape become the size: stretched, cropped, or with a border.", "crop"),
        "resample": _about("Pillow's filter. By default the model's own, bilinear for an .onnx file.", "bicubic"),
        "scale": _about("By what each pixel, 0 to 255, is multiplied. By default 1/255.", 1),
        "channels": _about("The order of the channels, or L for one grey channel. By default RGB.", "BGR"),
        "mean": _about("What is subtracted from each channel, or from all.", [0.485, 0.456, 0.406]),
        "std": _about("By what each channel is divided, or all.", [0.229, 0.224, 0.225]),
    },
    "ToBoxes": {"boxes": _about("How the outputs of a detector become boxes.", {"layout": "yolov8"})},
    "Boxes": {
        "layout": _about("What the outputs hold. By default yolov8.", "yolov8", "separate"),
        "outputs": _about("The names of the outputs: boxes, scores, labels.", ["output0"]),
        "format": _about("What the numbers of a box are. By default cxcywh.", "xyxy"),
        "normalized": _about("Whether the numbers are shares of the image, and no pixels."),
        "threshold": _about("The score that a box has to exceed, 0 to 1. By default 0.25.", 0.5),
        "iou": _about("From which overlap on the worse of two boxes is left out. By default 0.7.", 0.45),
    },
    "PolicySection": {
        "licenses": _about("The SPDX ids of the licences that model and tokenizer may have.", ["apache-2.0", "mit"])
    },
    "Package": {
        "triton": _about("The Triton model repository, with all fields of ModelConfig.", {"name": "minilm"}),
        "answers": _about("How outputs become answers.", {"aggregation_strategy": "simple"}),
    },
    "Answers": {
        "aggregation_strategy": _about("How tokens become entities. By default labels of tokens alone.", "simple"),
        "align_to_words": _about("Whether an answer to a question is widened to whole words."),
        "doc_stride": _about("How many tokens the windows of a long context share. By default one window.", 128),
        "handle_impossible_answer": _about("Whether no answer is an answer to a question, as in SQuAD 2."),
        "max_answer_len": _about("The most tokens of an answer to a question.", 15),
        "threshold": _about("The score that an object in an image has to exceed.", 0.5),
    },
    "Triton": {
        "name": _about("The name of the model in the server. By default the recipe's.", "minilm"),
        "ensemble": _about("The name of the model that takes texts or images and gives answers.", "minilm_text"),
        "tokenizer": _about("Whether the package has the tokenizer. By default true."),
        "postprocess": _about("Whether the package makes answers of outputs. By default true."),
        "image": _about("The container image of the Triton that will serve the package.", "24.05"),
        "max_batch_size": _about("The most rows that Triton joins; 0 joins none. By default from the profiles.", 32),
        "max_text_bytes": _about("The most bytes of UTF-8 in one text of a request.", 65536),
        "threads": _about("The threads of one instance on a CPU. By default those of Triton's backend.", 2),
        "layout": _about("Models behind an ensemble, one Python model, or the faster of the two: auto.", "fused"),
        "padding": _about("Pads texts to the profiles' sizes, never, or where it answers more requests: auto.", "auto"),
        "models": _about("Fields of ModelConfig for the other models of the package.", {"tokenizer": {}}),
    },
}
"""The name of a definition of the JSON Schema, "" for the recipe itself -> what its fields mean."""
