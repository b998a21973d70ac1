"""Every field of a recipe with values that it cannot have, and with its name misspelt."""

NAME = "name: tiny\n"
MODEL = "model: {source: model}\n"
MINIMAL = NAME + MODEL
GPU = MINIMAL + "target: {device: T4, runtime: tensorrt}\n"

# Every field, its kind, and a recipe that says V there.
SCALARS = {
    "name": ("text", MODEL + "name: V"),
    "model.source": ("text", NAME + "model: {source: V}"),
    "model.revision": ("text", NAME + "model: {source: model, revision: V}"),
    "model.task": ("choice", NAME + "model: {source: model, task: V}"),
    "model.tokenizer": ("text", NAME + "model: {source: model, tokenizer: V}"),
    "model.weights": ("choice", NAME + "model: {source: model, weights: V}"),
    "model.num_labels": ("count", NAME + "model: {source: model, num_labels: V}"),
    "model.random_head": ("flag", NAME + "model: {source: model, random_head: V}"),
    "model.prompt": ("text", NAME + "model: {source: model, prompt: V}"),
    "model.truncate_dim": ("count", NAME + "model: {source: model, truncate_dim: V}"),
    "model.trust_remote_code": ("flag", NAME + "model: {source: model, trust_remote_code: V}"),
    "target.device": ("text", MINIMAL + "target: {device: V}"),
    "target.runtime": ("choice", MINIMAL + "target: {runtime: V}"),
    "target.provider": ("choice", MINIMAL + "target: {provider: V}"),
    "target.isa": ("choice", MINIMAL + "target: {isa: V}"),
    "precision": ("choice", MINIMAL + "precision: V"),
    "profiles.0.batch": ("count", MINIMAL + "profiles: [{batch: V}]"),
    "profiles.0.batch.min": ("count", MINIMAL + "profiles: [{batch: {min: V, opt: 2, max: 3}}]"),
    "profiles.0.batch.opt": ("count", MINIMAL + "profiles: [{batch: [1, V, 1000000]}]"),
    "tensorrt.version": ("text", GPU + "tensorrt: {version: V}"),
    "tensorrt.memory_pool.workspace": ("size", GPU + "tensorrt: {memory_pool: {workspace: V}}"),
    "tensorrt.optimization_level": ("level", GPU + "tensorrt: {optimization_level: V}"),
    "tensorrt.compatibility": ("choice", GPU + "tensorrt: {compatibility: V}"),
    "tensorrt.cuda_graph": ("flag", GPU + "tensorrt: {cuda_graph: V}"),
    "tensorrt.max_aux_streams": ("level", GPU + "tensorrt: {max_aux_streams: V}"),
    "calibrate.samples": ("text", MINIMAL + "calibrate: {samples: V}"),
    "calibrate.limit": ("count", MINIMAL + "calibrate: {samples: samples/few.jsonl, limit: V}"),
    "validate.samples": ("text", MINIMAL + "validate: {samples: V}"),
    "validate.cosine": ("number", MINIMAL + "validate: {cosine: V}"),
    "validate.cosine.at_least": ("number", MINIMAL + "validate: {cosine: {at_least: V}}"),
    "validate.agreement": ("number", MINIMAL + "validate: {agreement: V}"),
    "validate.agreement.at_most": ("number", MINIMAL + "validate: {agreement: {at_most: V}}"),
    "validate.max_abs": ("number", MINIMAL + "validate: {max_abs: V}"),
    "validate.metric.at_least": ("number", MINIMAL + "validate: {metric: {name: accuracy, at_least: V}}"),
    "validate.metric.name": ("choice", MINIMAL + "validate: {metric: {name: V, at_least: 0.9}}"),
    "bench.shapes.0.batch": ("count", MINIMAL + "bench: {shapes: [{batch: V}]}"),
    "bench.shapes.0.budget.p95_ms": ("time", MINIMAL + "bench: {shapes: [{batch: 1, budget: {p95_ms: V}}]}"),
    "bench.via.0": ("choice", MINIMAL + "bench: {via: [V]}"),
    "bench.against.0.runtime": ("choice", MINIMAL + "bench: {against: [{runtime: V}]}"),
    "bench.against.0.precision": ("choice", MINIMAL + "bench: {against: [{runtime: pytorch, precision: V}]}"),
    "bench.against.0.compile": ("choice", MINIMAL + "bench: {against: [{runtime: pytorch, compile: V}]}"),
    "bench.threads": ("count", MINIMAL + "bench: {threads: V}"),
    "package.triton.name": ("text", MINIMAL + "package: {triton: {name: V}}"),
    "package.triton.ensemble": ("text", MINIMAL + "package: {triton: {ensemble: V}}"),
    "package.triton.tokenizer": ("flag", MINIMAL + "package: {triton: {tokenizer: V}}"),
    "package.triton.image": ("text", MINIMAL + "package: {triton: {image: V}}"),
    "package.triton.max_batch_size": ("level", MINIMAL + "package: {triton: {max_batch_size: V}}"),
    "graphs.encoder.precision": ("choice", MINIMAL + "graphs: {encoder: {precision: V}}"),
    "generate.num_beams": ("count", MINIMAL + "generate: {num_beams: V}"),
    "preprocess.size": ("count", MINIMAL + "preprocess: {size: V}"),
    "preprocess.mean.0": ("number", MINIMAL + "preprocess: {mean: [V]}"),
}
NEVER = ["{a: 1}", "0123", "yes", "~", "2026-01-02", "!!str x", "*nowhere", "'a\\nb", "[[[1]]]"]
WRONG = {
    "text": [*NEVER, "12", "1e3", "true", "[a, b]", '""'],
    "choice": [*NEVER, "12", "true", "[fp32]", "nothing-like-it"],
    "flag": [*NEVER, "12", "'true'", "1"],
    "count": [*NEVER, "0", "-1", "1.5", "1e3", "'1'", "true", "99999999999999999999", ".nan", "x"],
    "level": [*NEVER, "-1", "1.5", "'1'", "true", "99999999999999999999", "x"],
    "number": [*NEVER, "'0.9'", "true", ".nan", ".inf", "-.inf", "1e999", "-7e99", "x"],
    "time": [*NEVER, "0", "-1", "'1'", "true", ".nan", ".inf", "1e300", "x"],
    "size": [*NEVER, "0", "-1", "2 parsecs", "2.5.1GiB", "1e3", "999999TiB", "true", "GiB"],
}
WRONG_VALUES = {
    f"{path}={value}": (recipe.replace("V", value), path)
    for path, (kind, recipe) in SCALARS.items()
    for value in WRONG[kind]
}

TYPOS = {
    "naem": "name: tiny\nmodel: {source: model}\nnaem: x",
    "modle": NAME + "modle: {source: model}",
    "model.sorce": NAME + "model: {sorce: model}",
    "model.revison": NAME + "model: {source: model, revison: main}",
    "target.devise": MINIMAL + "target: {devise: T4}",
    "target.run time": MINIMAL + "target: {run time: tensorrt}",
    "precison": MINIMAL + "precison: fp16",
    "Precision": MINIMAL + "Precision: fp16",
    "profile": MINIMAL + "profile: [{batch: 1}]",
    "profiles.0.batch.optimum": MINIMAL + "profiles: [{batch: {min: 1, optimum: 2, max: 3}}]",
    "tensorrt.versoin": GPU + "tensorrt: {versoin: '10'}",
    "tensorrt.memory_pool.workspce": GPU + "tensorrt: {memory_pool: {workspce: 2GiB}}",
    "calibrate.sample": MINIMAL + "calibrate: {sample: x}",
    "validate.cosin": MINIMAL + "validate: {cosin: 0.9}",
    "validate.cosine.atleast": MINIMAL + "validate: {cosine: {atleast: 0.9}}",
    "validation": MINIMAL + "validation: {cosine: 0.9}",
    "bench.shape": MINIMAL + "bench: {shape: [{batch: 1}]}",
    "bench.shapes.0.budget.p97_ms": MINIMAL + "bench: {shapes: [{batch: 1, budget: {p97_ms: 1}}]}",
    "bench.against.0.runtim": MINIMAL + "bench: {against: [{runtim: pytorch}]}",
    "package.tritn": MINIMAL + "package: {tritn: {name: a}}",
    "package.triton.ensmble": MINIMAL + "package: {triton: {ensmble: a}}",
    "package.triton.dynamic_batchin": MINIMAL + "package: {triton: {dynamic_batchin: {}}}",
    "graphs.encoder.profile": MINIMAL + "graphs: {encoder: {profile: []}}",
    "generate.max_tokens": MINIMAL + "generate: {max_tokens: 3}",
    "preprocess.sizes": MINIMAL + "preprocess: {sizes: 3}",
    "extend": MINIMAL + "extend: base.yaml",
    "matrx": MINIMAL + "matrx: {precision: [fp16]}",
}
