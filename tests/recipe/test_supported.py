"""Fields of the schema that no step supports yet: the error names the field and has its place."""

import pytest

from engine import feasibility
from engine.errors import RecipeError

MINIMAL = "name: tiny\nmodel: {source: model}\n"
T4 = MINIMAL + "target: {device: T4, runtime: tensorrt}\n"
L4 = MINIMAL + "target: {device: L4, runtime: tensorrt}\n"

LATER = {
    "batches for OpenVINO": (
        MINIMAL + "target: {runtime: openvino}\npackage: {triton: {max_batch_size: 8}}",
        "4:36",
    ),
    "batches for a candidate of auto": (
        MINIMAL + "target: {runtime: auto}\npackage: {triton: {max_batch_size: 8}}",
        "4:36",
    ),
    "graphs": (MINIMAL + "graphs: {encoder: {precision: fp32}}", "3:9"),
    "beams": (MINIMAL + "generate: {num_beams: 2}", "3:23"),
    "an image's size for any model": (MINIMAL + "preprocess: {size: 384}", "3:13"),
    "an image's mean for any model": (MINIMAL + "preprocess: {mean: [0.5, 0.5, 0.5]}", "3:13"),
    "a server for generated text": (
        MINIMAL.replace("model}", "model, task: text-generation}") + "bench: {via: [in-process, triton-http]}",
        "3:14",
    ),
    "a server for TensorRT-RTX": (
        MINIMAL + "target: {device: T4, runtime: tensorrt-rtx}\nprecision: fp16\nbench: {via: [triton-grpc]}",
        "5:14",
    ),
    "a rival in int8": (MINIMAL + "bench: {against: [{runtime: pytorch, precision: int8}]}", "3:18"),
    "onnxruntime as a rival in fp16": (MINIMAL + "bench: {against: [{runtime: onnxruntime, precision: fp16}]}", "3:18"),
    "seq2seq on a GPU": (T4.replace("model}", "model, task: text2text-generation}"), "2:30"),
    "generation through a provider": (
        MINIMAL.replace("model}", "model, task: text-generation}") + "target: {device: L4, provider: cuda}",
        "2:30",
    ),
    "an answer on a GPU": (T4 + "generate: {max_new_tokens: 8}", "4:11"),
    "an answer of a classifier": (
        MINIMAL.replace("model}", "model, task: fill-mask}") + "generate: {max_new_tokens: 8}",
        "3:11",
    ),
    "the perplexity of a classifier": (
        MINIMAL.replace("model}", "model, task: fill-mask}") + "validate: {perplexity: {text: recipe.yaml}}",
        "3:24",
    ),
    "the perplexity of an encoder and a decoder": (
        MINIMAL.replace("model}", "model, task: text2text-generation}") + "validate: {perplexity: {text: recipe.yaml}}",
        "3:24",
    ),
    "named answers of a checkpoint": (MINIMAL + "postprocess: softmax", "3:14"),
    "names of a checkpoint's classes": (MINIMAL.replace("model}", "model, labels: [a, b]}"), "2:32"),
    "remote code": (MINIMAL.replace("model}", "model, trust_remote_code: true}"), "2:43"),
}


@pytest.mark.parametrize(("text", "place"), LATER.values(), ids=LATER)
def test_a_field_of_a_later_step_is_refused(project, text, place):
    loaded = project.one(text)
    with pytest.raises(RecipeError, match="not supported yet: ") as caught:
        feasibility.check(loaded)
    assert str(caught.value.position) == f"recipe.yaml:{place}"
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        MINIMAL,
        MINIMAL + "precision: int8\ntarget: {device: cpu, isa: avx512_vnni, provider: cpu}\nbench: {threads: 2}",
        MINIMAL + "bench: {via: [in-process, triton-grpc, triton-http]}",
        MINIMAL + "bench: {via: [in-process], against: [{runtime: pytorch}, {runtime: onnxruntime, precision: fp32}]}",
        T4 + "precision: fp16\ntensorrt: {version: '10', memory_pool: {workspace: 1GiB}, optimization_level: 5}",
        T4 + "tensorrt: {compatibility: same-compute-capability, version_compatible: true, strip_plan: true}",
        L4 + "tensorrt: {compatibility: ampere-plus, refit: true, cuda_graph: true}",
        L4 + "precision: fp8\ncalibrate: {samples: samples/few.jsonl}",
        L4 + "tf32: false",
        L4 + "precision: bf16\ntf32: null",
        MINIMAL + "target: {device: L4, runtime: tensorrt-rtx}\ntf32: true",
        MINIMAL + "target: {device: L4, provider: cuda}\ntf32: false",
        MINIMAL + "target: {device: L4, provider: tensorrt}\ntf32: true",
        L4 + "precision: bf16",
        L4 + "precision: int4",
        L4 + "bench: {against: [{runtime: pytorch, precision: fp16}, {runtime: pytorch, precision: bf16}]}",
        L4 + "bench: {against: [{runtime: pytorch, precision: tf32}, {runtime: pytorch, compile: reduce-overhead}]}",
        MINIMAL + "bench: {against: [{runtime: pytorch, precision: bf16, compile: default}]}",
        T4 + "precision: int8\ncalibrate: {samples: samples/few.jsonl}",
        MINIMAL + "target: {device: [T4, A10, L4, RTX 5090], runtime: tensorrt-rtx}\nprecision: int8",
        MINIMAL + "target: {device: A100, runtime: tensorrt-rtx}",
        MINIMAL + "target: {device: L4, provider: cuda}\nprecision: fp16",
        MINIMAL + "target: {device: T4, provider: tensorrt}\nprecision: int8",
        T4 + "package: {triton: {image: '24.05'}}",
        MINIMAL.replace("model}", "'timm:resnet18'}") + "preprocess: {layout: NHWC, size: 384, mean: [0.5]}",
        MINIMAL.replace("model}", "model, task: image-classification}") + "preprocess: {layout: NHWC}",
        MINIMAL.replace("model}", "model, task: text-generation}") + "precision: int8\ngenerate: {max_new_tokens: 8}",
        MINIMAL.replace("model}", "model, task: text2text-generation}") + "generate: {num_beams: 1}",
        MINIMAL.replace("model}", "model, task: text-generation}") + "validate: {perplexity: {text: recipe.yaml}}",
        MINIMAL.replace("model}", "model, task: zero-shot-image-classification, labels: [a cat, a dog]}"),
        MINIMAL + "precision: int4",
        MINIMAL + "precision: int8\nquantize: {weights_only: true}",
        MINIMAL + "quantize: {weights_only: true}",
        MINIMAL + "quantize: {keep_in: {fp32: [head]}}",
        MINIMAL + "precision: int8\nquantize: {keep_in: {fp32: [head, 'encoder.*']}}",
        MINIMAL + "target: {runtime: auto}\nprecision: int8\nquantize: {keep_in: {fp32: [head]}}",
        T4 + "precision: int8\nquantize: {keep_in: {fp32: [head], fp16: ['encoder.*']}}",
        MINIMAL.replace("model}", "model, weights: pickle-tensors-only, task: fill-mask}"),
    ],
)
def test_what_can_be_built_passes(project, text):
    feasibility.check(project.one(text))
