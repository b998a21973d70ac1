"""The house rules, held by tools: style, types, floors, and what the quick paths may import."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "transformers", "onnx", "onnxruntime", "numpy", "tensorrt", "huggingface_hub", "tokenizers")


def tool(name, *arguments):
    """Run a tool of this environment in the project's root."""
    program = Path(sys.executable).with_name(name)
    return subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [("check", "."), ("format", "--check", ".")], ids=["check", "format"])
def test_ruff_has_nothing_to_say(arguments):
    done = tool("ruff", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_mypy_strict_has_nothing_to_say():
    done = tool("mypy")
    assert done.returncode == 0, done.stdout


def test_each_floor_imports_only_downward():
    done = tool("lint-imports")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("module", sorted(p.relative_to(ROOT) for p in (ROOT / "engine").rglob("*.py")), ids=str)
def test_every_file_says_in_one_line_what_it_is(module):
    first = (ROOT / module).read_text().split("\n", 1)[0]
    assert first.startswith('"""'), module
    assert first.endswith('"""'), module


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


def test_a_check_imports_no_library_of_graphs():
    # It would take longer than all the rest: only a plan that goes in a circle needs it.
    assert "networkx" not in imported_by("check", "recipes/minilm_cpu.yaml")


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


ANY_PER_THOUSAND = 2
"""Of `dict[str, Any]`: dictionaries that nobody has a type for, a border to files and libraries apart."""


def untyped_dicts(folder):
    """Return how often values lie in dictionaries without a type, and in how many lines."""
    texts = [path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))]
    return sum(text.count("dict[str, Any]") for text in texts), sum(len(text.splitlines()) for text in texts)


def test_few_values_lie_in_dictionaries_without_a_type(tmp_path):
    found, lines = untyped_dicts(ROOT / "engine")
    assert lines > 10_000
    assert found <= ANY_PER_THOUSAND * lines / 1000, f"{found} in {lines} lines: use a dataclass"
    (tmp_path / "one.py").write_text("def one(a: dict[str, Any]) -> dict[str, Any]: ...\n")
    assert untyped_dicts(tmp_path) == (2, 1)
