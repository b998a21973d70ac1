"""The house rules that no tool of `.ci/run` knows: what the quick paths may import, and which module has a test."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "transformers", "onnx", "onnxruntime", "numpy", "tensorrt", "huggingface_hub", "tokenizers")


def test_every_file_says_in_one_line_what_it_is():
    paths = sorted((ROOT / "engine").rglob("*.py"))
    first = {str(each.relative_to(ROOT)): each.read_text("utf-8").partition("\n")[0] for each in paths}
    assert len(first) > 100
    wrong = [name for name, line in first.items() if not re.fullmatch(r'""".+"""', line)]
    assert wrong == [], "begin each file with a docstring of one line"


@functools.cache
def imported_by(*words):
    """Return the modules that a command line imports."""
    code = (
        "import sys; from engine import cli\n"
        "try: cli.main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [["--help"], ["build", "--help"], ["--version"]], ids=" ".join)
def test_help_imports_neither_pydantic_nor_any_ml_package(words):
    assert not imported_by(*words) & {*HEAVY, "pydantic", "networkx", "yaml", "rich"}


@pytest.mark.parametrize("words", [["check", "recipes/minilm_cpu.yaml"], ["steps"], ["schema"], ["gpus"]], ids=" ".join)
def test_commands_that_only_read_recipes_import_no_ml_package(words):
    assert not imported_by(*words) & set(HEAVY)


def test_an_up_to_date_build_imports_neither_tables_nor_recipes():
    code = "import sys; from engine import cli, snapshot; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {*HEAVY, "pydantic", "networkx", "yaml", "rich", "engine.report"}


def test_a_check_imports_no_library_of_graphs_or_tables():
    # They would take longer than all the rest: only who asks the plan's graph needs networkx, only a table rich.
    assert not imported_by("check", "recipes/minilm_cpu.yaml") & {"networkx", "rich"}


_AFTER_REFUSALS = {
    "engine.builder.preflight",
    "engine.builder.variant",
    "engine.builder.jobs",
    "engine.feasibility.facts",
    "engine.facts",
    "engine.machine.tools",
    "engine.reporting",
    "engine.step",
    "xxhash",
}
"""Modules about plans, fetched models and this machine: only a recipe that is not refused needs them."""


@pytest.mark.parametrize(("precision", "waits"), [("bf16", False), ("fp16", True)])
def test_a_refusal_waits_for_no_module_about_plans_models_or_this_machine(tmp_path, precision, waits):
    target = "target: {device: RTX 2080 Ti, runtime: tensorrt-rtx}"
    (tmp_path / "r.yaml").write_text(f"name: m\nmodel: {{source: 'hf:a/b'}}\n{target}\nprecision: {precision}\n")
    imported = imported_by("check", str(tmp_path / "r.yaml"))
    assert "engine.feasibility.precision" in imported
    assert imported & _AFTER_REFUSALS == (_AFTER_REFUSALS if waits else set())


@pytest.mark.parametrize(("package", "reads"), [("", False), ("package: {triton: {dynamic_batching: {}}}\n", True)])
def test_only_a_recipe_with_overrides_for_triton_waits_for_their_checks(tmp_path, package, reads):
    (tmp_path / "r.yaml").write_text(f"name: m\nmodel: {{source: m.onnx}}\nprecision: int4\n{package}")
    (tmp_path / "m.onnx").touch()
    assert ("engine.feasibility.triton" in imported_by("check", str(tmp_path / "r.yaml"))) is reads


def test_every_module_imports_without_its_optional_tools():
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / "engine").rglob("*.py"))
        if path.name not in ("__main__.py", "__init__.py")
    ]
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in HEAVY)
    code = f"import sys, importlib; {blocked}\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", code, *names], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_LOGIC = 25
"""Lines of code beyond which a module has a test of its name, or is named below."""
_SEEN_THROUGH = {
    "api": ("e2e/test_tiny.py", "each of its functions is a command line, and tests call both"),
    "digest": ("test_key.py", "of rows; of files in store/test_stat_cache.py"),
    "errors": ("recipe/test_messages.py", "whole messages"),
    "events": ("builder/test_loop.py", "who tells them"),
    "facts": ("machine/test_local_gpus.py", "by the facts that are asked for"),
    "step": ("test_step_names.py", "and by every step of steps/"),
    "builder": ("builder/test_loop.py", "its parts are one loop, with toy steps"),
    "builder/trace": ("builder/trace/test_hook.py", "each way of reading, through all files of the room"),
    "builder/executors": ("builder/executors/test_local.py", "the environment that a worker sees"),
    "client": ("e2e/test_loadtest.py", "lines, loads and figures against a server that answers"),
    "cluster": ("builder/executors/test_executor.py", "whole builds on nodes; on Ray with --whole"),
    "commands": ("e2e/test_query.py", "command lines need a process: each has its file in e2e/"),
    "tuning": ("tuning/test_search.py", "objective, proposals and races are parts of one search"),
    "feasibility": ("feasibility/test_infeasible.py", "a table of what is refused, over all of the room"),
    "feasibility/triton": ("feasibility/test_overrides.py", "a table of what is refused, over all of the room"),
    "gpus": ("gpus/test_catalogue.py", "names and figures of each GPU"),
    "kit/accuracy": ("steps/test_validate.py", "the gate and its bounds, as the step meets them"),
    "kit/bench": ("steps/test_bench.py", "as the step meets them"),
    "kit/checkpoints": ("kit/checkpoints/test_hub.py", "files of a hub; of a package in builder/test_sources.py"),
    "kit/generation": ("kit/generation/test_modules.py", "caches, by the graphs that have them"),
    "kit/onnx": ("kit/onnx/test_onnx_files.py", "external data; shapes in steps/test_shape_infer.py"),
    "kit/quantization": ("steps/test_quantize.py", "what int8 does to whole models"),
    "kit/quantization/dynamic": ("kit/quantization/dynamic/test_activation_scaling.py", "one idea in four files"),
    "kit/quantization/half": ("kit/quantization/half/test_half_search.py", "what the search decides by"),
    "kit/quantization/qdq": ("kit/quantization/qdq/test_qdq.py", "nodes, by the graphs that hold them"),
    "kit/reference": ("steps/test_reference.py", "as the step asks the original"),
    "kit/triton": ("steps/test_package.py", "the files of whole packages"),
    "kit/triton/answers": ("steps/test_package.py", "the parts behind each task's model"),
    "kit/triton/served": ("e2e/test_triton_tasks.py", "it is shipped, and runs in the server"),
    "lockfile": ("lockfile/test_locking.py", "what a lock takes down of this machine"),
    "builder/preflight": ("builder/test_preflight.py", "by the faults that `recipe check` finds before a build"),
    "machine": ("machine/test_tools.py", "tools; GPUs in machine/test_local_gpus.py"),
    "recipe": (
        "recipe/test_load.py",
        "a reader, by what good recipes become; by what wrong ones say in test_malformed.py",
    ),
    "report": ("report/test_table.py", "and by what commands print, in e2e/"),
    "runtimes": ("runtimes/test_names.py", "and by what each runtime says"),
    "runtimes/onnxruntime": ("runtimes/onnxruntime/test_runner.py", "fusion in steps/test_fuse.py"),
    "runtimes/tensorrt": ("steps/test_trt_build.py", "by real engines of TensorRT-RTX, and by the fake `tensorrt`"),
    "runtimes/tensorrt_rtx": ("steps/test_trt_build.py", "by real engines"),
    "server": ("e2e/test_serve.py", "processes and signals need a real server"),
    "store": ("store/test_store.py", "what is on disk, by the store's guarantees"),
    "store/remote": ("store/remote/test_tier.py", "two machines with one remote; forgeries in test_forgeries.py"),
    "tasks": ("tasks/test_registry.py", "a table"),
    "tuning/layer_search": ("commands/test_bisect.py", "builds of models with planted layers"),
}
"""Modules, and rooms for those of their modules that have no test of their name: where they are seen, and why there.

A new module gets a test of its name, so that this table becomes shorter.
"""


def modules():
    """Return the modules with logic, without their suffix and relative to engine/."""
    for path in sorted((ROOT / "engine").rglob("*.py")):
        code = [line for line in path.read_text().splitlines() if line.strip() and not line.strip().startswith("#")]
        if not path.name.startswith("__") and len(code) > _LOGIC:
            yield path.relative_to(ROOT / "engine").with_suffix("")


def unnamed():
    tests = ROOT / "tests"
    return [each for each in modules() if not (tests / each.parent / f"test_{each.name}.py").exists()]


def test_a_module_with_logic_has_a_test_of_its_name_or_a_reason():
    lost = [str(each) for each in unnamed() if not {str(each), str(each.parent)} & _SEEN_THROUGH.keys()]
    assert lost == [], "write tests/<room>/test_<module>.py, or say in _SEEN_THROUGH which test sees the module"


def test_no_reason_outlives_what_it_is_for():
    needed = {name for each in unnamed() for name in (str(each), str(each.parent))}
    assert sorted(_SEEN_THROUGH.keys() - needed) == [], (
        "take these out of _SEEN_THROUGH: they have tests of their names"
    )
    lost = [file for file, _ in _SEEN_THROUGH.values() if not (ROOT / "tests" / file).is_file()]
    assert lost == [], "name the tests of today in _SEEN_THROUGH"
