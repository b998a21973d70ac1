"""Further slips: units, quotes, indentation, words of other tools. Each is one error, and its hint works."""

import os
import re

import graphs
import onnx
import pytest

from engine import cli, commands

RECIPE = """name: net
model: {source: net.onnx}
target: {device: cpu, runtime: onnxruntime}
precision: fp32
profiles: [{batch: [1, 2, 4]}]
bench: {shapes: [{batch: 1}]}
"""
LINES = (
    # The lines of a slip, what its hint says, and the lines that follow the hint: "" where they depend on the user.
    (
        "bench: {shapes: [{batch: 1, budget: 5ms}]}",
        "budget: {p95_ms: 5}",
        "bench: {shapes: [{batch: 1, budget: {p95_ms: 5}}]}",
    ),
    (
        "bench: {shapes: [{batch: 1, budget: {p95_ms: 0,5}}]}",
        "as in 0.5",
        "bench: {shapes: [{batch: 1, budget: {p95_ms: 0.5}}]}",
    ),
    ("bench: {threads: all}", "`threads: 2`", "bench: {threads: 2}"),
    ("bench: {shapes: [{batch: one}]}", "`batch: 2`", "bench: {shapes: [{batch: 2}]}"),
    ("bench:\n  shapes:\n  -batch: 1", "`- batch:`", "bench:\n  shapes:\n  - batch: 1"),
    ("version: 2", "`recipe: 1`", "recipe: 1"),
    ("batchsize: 8", "profiles: [{batch: [1, 8, 32]}]", "profiles: [{batch: [1, 8, 32]}]"),
    ("maxBatchSize: 8", "profiles: [{batch: [1, 8, 32]}]", "profiles: [{batch: [1, 8, 32]}]"),
    ("include: base.yaml", "`extends: base.yaml`", "extends: base.yaml"),
    ("description: a small model", "# TEXT", "# a small model"),
    ("env: {HF_TOKEN: abc}", "leave it out", "# none"),
    ("quantize: {bits: 8}", "`precision: int8`", "precision: int8"),
    ("package: triton", "package: {triton: {}}", "package: {triton: {}}"),
    ("package: {name: other}", "`package.triton.name`", "package: {triton: {name: other}}"),
    ("package: {triton: {instance_group: 2}}", "[{count: 2}]", "package: {triton: {instance_group: [{count: 2}]}}"),
    ("profiles: [{batch: {min: 1, max: 8}}]", "`opt: 8`", "profiles: [{batch: {min: 1, opt: 8, max: 8}}]"),
    ("profiles: [{batch: '1:8:32'}]", "[1, 8, 32]", "profiles: [{batch: [1, 8, 32]}]"),
    ("model: {path: net.onnx}", "`source`", "model: {source: net.onnx}"),
    ("model: [net.onnx]", "`model: {source: net.onnx}`", "model: {source: net.onnx}"),
    ("model: {source: net.onnx, target: cpu}", "`target` is a field of the recipe itself", ""),
    (
        "model:\n  source: net.onnx\n  precision: fp32",
        "indent it as `model`",
        "model:\n  source: net.onnx\nprecision: fp32",
    ),
    ("model: {source: owner/name@main}", "`hf:owner/name` with `revision: main`", ""),
    ("model: {source: 'hf:owner/name@v1'}", "`source: hf:owner/name` and `revision: v1`", ""),
    ('model: {source: "C:\\models\\net.onnx"}', "write single quotes", ""),
    ("model: {source: 'file:///tmp/net.onnx'}", "write the path: /tmp/net.onnx", ""),
    ("model: {source: '${MODEL}'}", "${MODEL} stays as it is", ""),
    ("validate: {cosine: abc}", "`cosine: 0.99`", "validate: {cosine: 0.99}"),
    ("validate: {cosine: '>= 0.99'}", "write 0.99", "validate: {cosine: 0.99}"),
    ("validate: {cosine: {min: 0.99}}", "`at_least`", "validate: {cosine: {at_least: 0.99}}"),
    ("validate: {samples: [a.jsonl, b.jsonl]}", "`samples: a.jsonl`", ""),
    ("hermetic: 'yes'", "`hermetic: true`", "hermetic: true"),
    ("policy: {licenses: mit}", "`licenses: [mit]`", ""),
    ("target: {device=cpu}", "`device: cpu`", "target: {device: cpu}"),
    ("target: {device: cpu, runtime: [onnxruntime, openvino]}", "matrix: {target.runtime: ", ""),
    (
        "target: {device: cpu; runtime: onnxruntime}",
        "a comma is missing",
        "target: {device: cpu, runtime: onnxruntime}",
    ),
    ("precision: fp-32", "`fp32`", "precision: fp32"),
    ("precision: fp32,", "`fp32`", "precision: fp32"),
    ("precision: !fp32", "write plain values", "precision: fp32"),
)
COMMANDS = (
    # A command line, what its hint says, and the command line that follows it: "" where it depends on the user.
    ("check net.yaml --set matrix=precision:int8", "--set precision=int8", "check net.yaml --set precision=int8"),
    ("check net.yaml --set validate.cosine=abc", "cosine: 0.99", "check net.yaml --set validate.cosine=0.99"),
    ("check net.yaml --set bench.shapes.5.batch=2", "first one as 0", "check net.yaml --set bench.shapes.0.batch=2"),
    ("check net.yaml --set policy.licenses=mit", "[mit]", ""),
    ("build net.yaml --cache /dev/null", "name a folder with --cache", "build net.yaml --cache store"),
    ("build net.yaml --cache net.yaml", "name a folder with --cache", "build net.yaml --cache store"),
    ("build --config net.yaml", "needs no option: leave it out", "build net.yaml"),
    ("build --file net.yaml", "needs no option: leave it out", "build net.yaml"),
    ("build -r net.yaml", "needs no option: leave it out", "build net.yaml"),
    ("build net.yaml --verbose=2", "`--verbose` without a value", "build net.yaml --verbose"),
    ("build net.yaml -q -v", "leave one of them out", "build net.yaml -q"),
    ("build net.yaml --watch --dry-run", "leave one of them out", "build net.yaml --watch"),
    ("build net.yaml --only bench", "a step is chosen with --to STEP", "build net.yaml --to bench"),
    ("build net.yaml --skip bench", "--to STEP", "build net.yaml --to validate"),
    ("build net.yaml --from export", "--force STEP", "build net.yaml --force export"),
    ("build net.yaml --force-rebuild bench", "--force STEP", "build net.yaml --force bench"),
    ("build net.yaml --remote s3://bucket", "RECIPE_REMOTE=URL", ""),
    ("build net.yaml --yes", "leave it out", "build net.yaml"),
    ("build net.yaml --no-color", "--color never", "build net.yaml"),
    ("build net.yaml --directory models", "-C DIR", ""),
    ("build https://example.org/net.yaml", "download it, and name the file", "build net.yaml"),
    ("build hf:owner/name", "recipe new hf:owner/name", "new hf:owner/name"),
    ("build s3://bucket/net.yaml", "RECIPE_REMOTE", ""),
    ("--directory recipes check net.yaml", "recipe -C recipes check", ""),
    ("-C nowhere check net.yaml", "this is", ""),
    ("-C recipse check net.yaml", "did you mean recipes?", ""),
    ("check net.yaml -C", "-C DIR", ""),
    ("list --cahce x", "--cache DIR", "list --cache x"),
    ("list net.yaml", "leave it out", "list"),
    ("ls", "recipe list", "list"),
    ("watch net.yaml", "recipe build --watch", "build --watch net.yaml"),
    ("open net.yaml", "recipe report --open", "report --open net.yaml"),
    ("config", "recipe doctor", "doctor"),
    ("report net.yaml --open=firefox", "`--open` without a value", "report net.yaml --open"),
    ("report net.yaml -o - --open", "leave -o out", "report net.yaml --open"),
    ("history net.yaml -n 5", "--limit N", "history net.yaml --limit 5"),
    ("serve net.yaml -p 8000", "--http-port PORT", "serve net.yaml --http-port 8000"),
    ("loadtest localhost:1 --users 5", "--concurrency N", "loadtest localhost:1 --concurrency 5"),
    ("graph net.yaml -o graph.txt", "`> FILE`", "graph net.yaml"),
    ("doctor net.yaml", "--for net.yaml", "doctor --for net.yaml"),
    ("check --strict net.yaml", "recipe check --help", "check net.yaml"),
)  # fmt: skip


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "base.yaml").write_text("abstract: true\n")
    (tmp_path / "net.yaml").write_text(RECIPE)
    onnx.save(graphs.layers(), tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("RECIPE_")]:
        monkeypatch.delenv(name)
    return tmp_path


def answer(words, capsys):
    """Return the exit code of a command line, and what it prints to standard error."""
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    return ended.value.code, capsys.readouterr().err


def with_lines(lines):
    """Return the recipe with other lines in place of its own lines about the same fields."""
    fields = set(re.findall(r"^(\w+)", lines, re.MULTILINE))
    own = [each for each in RECIPE.splitlines() if each.partition(":")[0] not in fields]
    return "\n".join([*own, lines, ""])


def is_one_error(text):
    return text.startswith("error: ") and text.count("error: ") == 1 and "Traceback" not in text


def test_the_slips_are_many():
    assert min(len(LINES), len(COMMANDS)) >= 30


@pytest.mark.parametrize(("lines", "hint", "mended"), LINES, ids=[lines for lines, _, _ in LINES])
def test_a_slip_in_a_recipe_is_one_error_whose_hint_works(lines, hint, mended, project, capsys):
    (project / "slip.yaml").write_text(with_lines(lines))
    code, text = answer(["check", "slip.yaml"], capsys)
    assert code == 2
    assert is_one_error(text)
    assert re.match(r"error: slip\.yaml:\d+:\d+: ", text)
    assert hint in text.partition("hint: ")[2]
    if mended:
        (project / "slip.yaml").write_text(with_lines(mended))
        assert answer(["check", "slip.yaml"], capsys) == (0, "")


@pytest.mark.parametrize(("line", "hint", "mended"), COMMANDS, ids=[line for line, _, _ in COMMANDS])
def test_a_slip_on_the_command_line_is_one_error_whose_hint_works(line, hint, mended, project, capsys):
    code, text = answer(line.split(), capsys)
    assert code in (1, 2)
    assert is_one_error(text)
    assert hint in text.partition("hint: ")[2]
    if mended.startswith("check"):
        assert answer(mended.split(), capsys) == (0, "")
    elif mended:
        commands.parse(mended.split())
