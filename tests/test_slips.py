"""Slips of newcomers: each answer says what is wrong, where, and how it is mended, so that nobody needs the source."""

import os
import re

import pytest

from engine import cli

RECIPE = """name: tiny
model: {source: model}
target: {device: cpu, runtime: onnxruntime}
precision: fp32
validate: {samples: samples.jsonl}
bench: {shapes: [{batch: 1, sequence: 16}]}
"""
COMMANDS = (
    ("", "first ones"),
    ("", "recipe new MODEL"),
    ("tiny.yaml", "recipe build tiny.yaml"),
    ("tiny", "recipe build tiny.yaml"),
    ("biuld tiny.yaml", "recipe build"),
    ("compile tiny.yaml", "recipe build"),
    ("run tiny.yaml", "recipe build"),
    ("make tiny.yaml", "recipe build"),
    ("init", "recipe new"),
    ("create", "recipe new"),
    ("ls", "recipe list"),
    ("clean", "recipe cache gc"),
    ("validate tiny.yaml", "recipe check"),
    ("lint tiny.yaml", "recipe check"),
    ("deploy tiny.yaml", "recipe publish"),
    ("benchmark tiny.yaml", "recipe loadtest"),
    ("explain tiny.yaml", "recipe why"),
    ("export tiny.yaml", "recipe build RECIPE.yaml --to export"),
    ("version", "recipe --version"),
    ("-v", "recipe --version"),
    ("help", "recipe --help"),
    ("help build", "recipe build --help"),
    ("--json build tiny.yaml", "recipe build --json"),
    ("build", "recipe build tiny.yaml"),
    ("build tiny", "tiny.yaml"),
    ("build tiny.yml", "tiny.yaml"),
    ("build recipes/tiny.yaml", "did you mean tiny.yaml"),
    ("build other.yaml", "recipes/other.yaml"),
    ("build other", "recipes/other.yaml"),
    ("build ../recipes/other.yaml", "recipes/other.yaml"),
    ("build recipes", "recipes/other.yaml"),
    ("build .", "tiny.yaml"),
    ("build elsewhere.yaml", "tiny.yaml, recipes/other.yaml"),
    ("build tiny.yaml precision=int8", "--set precision=int8"),
    ("build tiny.yaml export", "--to export"),
    ("build tiny.yaml trt_build", "--to trt-build"),
    ("build tiny.yaml --to exprot", "`export`"),
    ("build tiny.yaml --to trt_build", "`trt-build`"),
    ("build tiny.yaml --to trt-build", "recipe graph"),
    ("build tiny.yaml --force fuze", "`fuse`"),
    ("build tiny.yaml --remake valdiate", "`validate`"),
    ("build tiny.yaml --to", "--to STEP"),
    ("build tiny.yaml --set", "--set K=V"),
    ("build tiny.yaml -n", "--dry-run"),
    ("build tiny.yaml --dry", "--dry-run"),
    ("build tiny.yaml --dryrun", "--dry-run"),
    ("build tiny.yaml -f", "--force STEP"),
    ("build tiny.yaml --job 2", "--jobs N"),
    ("build tiny.yaml --parallel 2", "--jobs N"),
    ("build tiny.yaml --cashe x", "--cache DIR"),
    ("build tiny.yaml --cache-dir x", "--cache DIR"),
    ("build tiny.yaml --output-dir x", "--output DIR"),
    ("build tiny.yaml -j many", "no whole number"),
    ("build tiny.yaml -j 0", "from 1 to"),
    ("build tiny.yaml --set precision", "--set precision=VALUE"),
    ("build tiny.yaml --set precision:int8", "--set precision=int8"),
    ("build tiny.yaml --set precison=int8", "`precision`"),
    ("build tiny.yaml --set precision=int9", "`int8`"),
    ("build tiny.yaml --set target.devise=T4", "`target.device`"),
    ("build tiny.yaml --set device=T4", "`target.device`"),
    ("build tiny.yaml --set bench.shapes[0].batch=8", "did you mean `bench.shapes.0.batch`?"),
    ("build tiny.yaml --set shapes[1].batch=8", "did you mean `bench.shapes.1.batch`?"),
    ("build tiny.yaml --set profile.batch=8", "did you mean `profiles.0.batch`?"),
    ("build tiny.yaml --set bench.shapes=1x16", "shapes: [{batch: 1, sequence: 16}]"),
    ("build tiny.yaml --only T4", "--only target.device=T4"),
    ("build tiny.yaml --only target.device=T4", "target.device: cpu"),
    ("build tiny.yaml --timeout 30", "30m"),
    ("build tiny.yaml --on ray", "ray://HOST:PORT"),
    ("lock tiny.yaml --set precision=int8", "write into the recipe what is to stay"),
    ("build tiny.yaml --locked", "recipe lock tiny.yaml"),
    ("why tiny.yaml exprot", "`export`"),
    ("why export", "export"),
    ("logs tiny.yaml bnch", "`bench`"),
    ("logs tiny.yaml", "build the recipe first"),
    ("show tiny", "tiny.yaml"),
    ("graph tiny.yaml --format mermaids", "`mermaid`"),
    ("query localhost:1", "recipe serve"),
    ("cache clean", "`gc`"),
    ("cache list", "`ls`"),
    ("cache stat", "`stats`"),
    ("cache ls x", "leave it out"),
    ("cache gc --dryrun", "--dry-run"),
    ("steps export", "leave it out"),
    ("gpus T44", "T4"),
    ("gpus GTX-1080", "the nearest that works is the T4"),
    ("doctor --fro tiny.yaml", "--for RECIPE"),
    ("new", "hf:OWNER/NAME"),
    ("new nowhere/model.onnx", "an .onnx file"),
    ("new model --gpu T4", "--device NAME"),
    ("new model --device T44", "T4"),
    ("new tiny.yaml", "recipe build tiny.yaml"),
    ("build tiny.yaml --device T4", "--set target.device=T4"),
    ("build tiny.yaml -q --precision=int8", "--set precision=int8"),
    ("build tiny.yaml --fp16", "--set precision=fp16"),
    ("build tiny.yaml --gpu", "--set target.device="),
    ("build tiny.yaml --no-cache", "--force STEP"),
    ("build tiny.yaml --clean", "recipe cache gc"),
    ("build tiny.yaml --only precision=int8", "precision: fp32"),
    ("build tiny.yaml -o tiny.yaml", "name another folder"),
    ("build tiny.yaml;", "did you mean tiny.yaml"),
    ("build model", "recipe new model"),
    ("show tiny.yaml --format json", "--json"),
    ("lock tiny.yaml --update", "--refresh"),
    ("serve tiny.yaml --port http", "--http-port PORT"),
    ("cache gc --keep 10", "--older-than AGE"),
    ("cache gc --older 30", "--older-than AGE"),
    ("report tiny.yaml -o nowhere/report.html", "make it, or name another file"),
    ("diff tiny.yaml::int8 tiny.yaml", "variants: tiny"),
    ("gpus rtx", "name one of them: RTX 2060"),
    ("completion powershell", "bash, zsh, fish"),
    ("new --task sentiment model", "text-classification"),
    ("publish tiny.yaml", "s3://BUCKET/models"),
    ("publish tiny.yaml s3:/bucket", "s3://bucket"),
)
LINES = (
    ("target: {device: T44, runtime: tensorrt}", "T4"),
    ("target: {device: cuda, runtime: tensorrt}", "device: T4"),
    ("target: {device: 'cuda:0', runtime: tensorrt}", "device: T4"),
    ("target: {device: GTX 1080, runtime: tensorrt}", "the nearest that works is the T4"),
    ("target: {device: rtx4090, runtime: tensorrt}", "did you mean RTX 4090?"),
    ("target: {device: sm_75, runtime: tensorrt}", "T4"),
    ("target: {device: CPU}", "cpu"),
    ("target: {device: mps}", "recipe gpus"),
    ("target: cpu", "target: {device: cpu}"),
    ("target: {device: cpu, runtime: tensorrt}", "runtime: onnxruntime"),
    ("target: {device: cpu, provider: CUDAExecutionProvider}", "`cuda`"),
    ("device: cpu", "`target.device`"),
    ("runtime: onnxruntime", "`target.runtime`"),
    ("task: text-classification", "`model.task`"),
    ("model: model", "model: {source: model}"),
    ("model: {source: owner/name}", "hf:owner/name"),
    ("model: {source: model, task: sentiment-analysis}", "`text-classification`"),
    ("model: {source: $HOME/model}", "variables"),
    ("model: {source: ~/model}", "from the recipe's folder"),
    ("model: {source: ../model}", "--allow-path"),
    ("model: {source: model.pt}", "ONNX"),
    ("model: {source: model.gguf}", "save_pretrained()"),
    ("model: {source: model/config.json}", "directory"),
    ("model: {source:model}", "`source: model`"),
    ("model: {source: 'hf:a/b', revision: 1e3}", '"1e3"'),
    ("precision: [int8, fp32]", "matrix: {precision: [int8, fp32]}"),
    ("precision: int8, fp32", "matrix: {precision: [int8, fp32]}"),
    ("precision: INT8", "`int8`"),
    ("precision: half", "`fp16`"),
    ("precisions: [int8]", "`precision`"),
    ("precision:int8", "`precision: int8`"),
    ("precision = int8", "`precision: int8`"),
    ("precision: int8;", ""),
    ("fp16: true", "precision: fp16"),
    ("quantize: int8", "precision: int8"),
    ("batch_size: 8", "profiles: [{batch: [1, 8, 32]}]"),
    ("max_length: 128", "profiles: [{sequence: [1, 128, 512]}]"),
    ("profile: [{batch: 1}]", "`profiles`"),
    ("profiles: 1x16", "profiles: [{batch: 1, sequence: 16}]"),
    ("profiles: [{batch: [8, 4, 2]}]", "min <= opt <= max"),
    ("dynamic_batching: {}", "`package.triton.dynamic_batching`"),
    ("bench: true", "bench: {}"),
    ("bench: [{batch: 1}]", "bench: {shapes: ["),
    ("bench: {shapes: [1x16]}", "shapes: [{batch: 1, sequence: 16}]"),
    ("bench: {shapes: [[1, 16]]}", "shapes: [{batch: 1, sequence: 16}]"),
    ("bench: {shapes: [{batch: 1, budget: 5}]}", "budget: {p95_ms: 5}"),
    ("bench: {shapes: [{batch: 1, budget: {p95: 5}}]}", "`p95_ms`"),
    ("bench: {shapes: [{batch: 1, budget: {p95_ms: 5ms}}]}", "write 5,"),
    ("validate: samples.jsonl", "validate: {samples: samples.jsonl}"),
    ("validate: {samples: [samples.jsonl]}", "samples: samples.jsonl"),
    ("validate: {samples: sample.jsonl}", "samples.jsonl"),
    ("validate: {samples: model/sample.csv}", "holds no name like it"),
    ("validate: {samples: samples.csv}", '{"text": "a text"}'),
    ("validate: {samples: data/samples.jsonl}", "there is no folder data"),
    ("validate: {agreement: 95%}", "write 0.95"),
    ("validate: {cosine: 99}", "write 0.99"),
    ("validate: {accuracy: 0.9}", "metric: {name: accuracy"),
    ("validate: {tolerance: 0.1}", "max_abs"),
    ("validate: samples: samples.jsonl", "validate: {samples: samples.jsonl}"),
    ("package: {triton: true}", "triton: {}"),
    ("package: {triton: {max_queue_delay: 5}}", ""),
    ("package: {triton: {dynamic_batching: {max_queue_delay_microseconds: 5ms}}}", "write 5000"),
    ("tensorrt: {workspace: 2GiB}", "memory_pool: {workspace: 2GiB}"),
    ("extends: [a.yaml, b.yaml]", "extends: base.yaml"),
    ("extends: tinny.yaml", "tiny.yaml"),
    ("matrix: {precision: int8}", "precision: [int8]"),
    ("matrix: {device: [T4, L4]}", "`target.device`"),
    ("name: my model", "name: my-model"),
    ("name: 123", '"123"'),
    ("name: 'tiny", "a quote is not closed"),
    ("target: {device: cpu", "not closed"),
    ("target:\n\tdevice: cpu", "spaces"),
    ("target:\n  device: cpu\n   runtime: onnxruntime", "indent `runtime`"),
    ("target:\ndevice: cpu", "indent the fields of `target`"),
    ("target:\n- device: cpu", "without the dash"),
    ("- precision: fp32", "without a dash"),
    ("precision: fp16\nprecision: int8", "keep one of them"),
    ("target: {device: [cpu, T4]}", "`matrix` varies target.device"),
    ("target: {device: A100 48 GB, runtime: tensorrt}", "A100-40GB"),
    ("target: {runtime: trt, device: T4}", "`tensorrt`"),
    ("precision: float16", "`fp16`"),
    ("precision: 8", "`int8`"),
    ("model: {source: model, task: ner}", "`token-classification`"),
    ("model: {source: 'https://huggingface.co/owner/name'}", "`hf:owner/name`"),
    ("validate: {agreement: 95}", "write 0.95"),
    ("bench: {against: pytorch}", "against: [{runtime: pytorch}]"),
    ("bench: {against: [pytorch]}", "against: [{runtime: pytorch}]"),
    ('bench: {shapes: [{batch: "1,8"}]}', "{batch: 1}, {batch: 8}"),
    ("profiles: [{batch: 1-8}]", "[1, 8, 8]"),
    ("profiles: [{batch: [1, 8]}]", "[min, opt, max]"),
    ("package: {triton: {name: my model}}", "name: my-model"),
    ("package: {triton: {instances: 2}}", "`instance_group`"),
    ("package: {triton: {dynamic_batching: true}}", "dynamic_batching: {"),
    ("tensorrt: {memory_pool: {workspace: 4}}", "4GiB"),
    ("calibrate: samples.jsonl", "calibrate: {samples: samples.jsonl}"),
    ("steps: [export, fuse]", "steps: {STEP: {OPTION: VALUE}}"),
    ('name: ""', "name: my-model"),
    ("recipe: 2", "write `recipe: 1`"),
    ("steps: {x: yes}", '"yes"'),
    ("steps: {exprot: {}}", "`export`"),
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a folder with a model of which only the configuration is there, samples, and two recipes."""
    folder = tmp_path / "project"
    for each in ("model", "recipes"):
        (folder / each).mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    (folder / "model" / "config.json").write_text(
        '{"model_type": "bert", "architectures": ["BertForSequenceClassification"]}'
    )
    for each in ("samples.jsonl", "samples.csv", "model.pt", "model.gguf"):
        (folder / each).write_text('{"text": "one"}\n')
    (folder / "tiny.yaml").write_text(RECIPE)
    (folder / "recipes" / "other.yaml").write_text(RECIPE)
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("RECIPE_")]:
        monkeypatch.delenv(name)
    return folder


def answer(words, capsys):
    """Return the exit code of a command line, and what it prints to standard error."""
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    return ended.value.code, capsys.readouterr().err


def with_line(line):
    """Return the recipe with other lines in place of its own lines about the same fields."""
    fields = set(re.findall(r"^(\w+)", line, re.MULTILINE))
    own = [each for each in RECIPE.splitlines() if each.partition(":")[0] not in fields]
    return "\n".join([*own, line, ""])


def test_the_slips_are_many():
    assert len(COMMANDS) + len(LINES) > 150


@pytest.mark.parametrize(("line", "mend"), COMMANDS, ids=[line or "no words" for line, _ in COMMANDS])
def test_a_slip_on_the_command_line_is_answered_with_its_mend(line, mend, project, capsys):
    code, text = answer(line.split(), capsys)
    assert code in (1, 2)
    assert text.startswith("error: ")
    assert mend in text


@pytest.mark.parametrize(("line", "mend"), LINES, ids=[line for line, _ in LINES])
def test_a_slip_in_a_recipe_is_answered_with_its_place_and_its_mend(line, mend, project, capsys):
    (project / "slip.yaml").write_text(with_line(line))
    code, text = answer(["check", "slip.yaml"], capsys)
    assert code == 2
    assert re.match(r"error: slip\.yaml:\d+:\d+: ", text)
    assert mend in text


def test_a_path_that_starts_at_the_working_directory_is_written_from_the_recipe_s_folder(project, capsys):
    (project / "recipes" / "slip.yaml").write_text(
        with_line("validate: {samples: samples.jsonl}\nmodel: {source: ../model}")
    )
    code, text = answer(["check", "recipes/slip.yaml"], capsys)
    assert code == 2
    assert "write ../samples.jsonl" in text


@pytest.mark.parametrize(
    ("name", "meant"), [("RECIPE_CAHCE", "RECIPE_CACHE"), ("RECIPE_REMOT", "RECIPE_REMOTE"), ("RECIPE_PATHS", None)]
)
def test_a_misspelt_variable_of_the_environment_is_noted(name, meant, project, capsys, monkeypatch):
    monkeypatch.setenv(name, "x")
    _, text = answer(["check", "missing.yaml"], capsys)
    assert (f"note: the variable {name} is not read; did you mean {meant}?" in text) == (meant is not None)
