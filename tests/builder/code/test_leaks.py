"""Edits that changed what a job does, and that an analysis of harmless code missed: each makes its jobs run again."""

from pathlib import Path

import pytest
from edited_code import EditedCode

from engine import api
from engine.builder.code import closure

RECIPE = Path(__file__).resolve().parents[3] / "recipes" / "minilm_cpu.yaml"


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    [variant] = api.plan([RECIPE])
    return EditedCode(tmp_path_factory.mktemp("edited"), {job.name: job.step for job in variant.jobs})


def rekeyed(edited, file, old, new):
    text = edited.text(file)
    assert text.count(old) == 1
    return edited.rekeyed({file: text.replace(old, new)})


def test_the_values_of_shape_tensors_in_another_order_count_for_the_reference(edited):
    values = "getattr(stated, end)"
    assert "reference" in rekeyed(edited, "recipe/shape_values.py", f"{{name: {values}", f"{{name: {values}[::-1]")


def test_another_spelling_of_licences_counts_for_what_reads_and_writes_them(edited):
    call = "canonicalize_license_expression(text)"
    assert {"fetch", "package"} <= rekeyed(edited, "recipe/licenses.py", f"str({call})", f"str({call}).lower()")


@pytest.fixture
def digest_of(tmp_path, monkeypatch):
    """Return the digest of the code of the module `leaks.step` in a package of these files."""
    monkeypatch.syspath_prepend(tmp_path)

    def digest(**texts):
        (tmp_path / "leaks").mkdir(exist_ok=True)
        for name, text in {"__init__": "", **texts}.items():
            (tmp_path / "leaks" / f"{name}.py").write_text(text)
        closure.forget()
        return closure.of("Step", ("leaks.step",)).digest

    yield digest
    closure.forget()


@pytest.mark.parametrize(
    ("facade", "use"),
    [
        ("from leaks.inner import level", "from leaks.facade import level"),
        ("from leaks.inner import level as degree", "from leaks.facade import degree"),
        ("from leaks.inner import *", "from leaks.facade import *"),
        ("from leaks import inner", "from leaks.facade import inner"),
        ("import leaks.inner", "import leaks.facade"),
        ("__all__ = ['level']\ndef __getattr__(name):\n    from leaks.inner import level\n    return level",
         "from leaks.facade import level"),
    ],
)  # fmt: skip
def test_a_function_counts_that_another_module_exports_again(digest_of, facade, use):
    one, other = (digest_of(step=use, facade=facade, inner=f"def level():\n    return {value}\n") for value in (1, 2))
    assert one != other


@pytest.mark.parametrize(
    "text",
    [
        "def run(out):\n    print('level', (level := {0}))\n    out.write_text(str(level))",
        "def run(out):\n    if (level := {0}) > 0:\n        raise ValueError(f'level {{level}}')\n    return level",
        "def run(out):\n    log.info(f'level {{(level := {0})}}')\n    return level",
        "def run(out, level=(other := {0})):\n    return other",
        "def run(out):\n    return [level for each in out if (level := each + {0})]",
    ],
)
def test_a_value_counts_that_is_bound_inside_an_expression(digest_of, text):
    assert digest_of(step=text.format(1)) != digest_of(step=text.format(2))
