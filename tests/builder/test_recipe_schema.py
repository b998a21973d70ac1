"""The schema for editors has the options of the steps and runtimes that other installed packages bring."""

import json
import os
import subprocess
import sys

import pytest

from engine.builder import registry
from engine.builder.recipe_schema import recipe_schema
from engine.recipe.editor import editor_schema
from engine.runtimes import registry as registry_of_runtimes
from engine.testing import install

CODE = '''
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from engine.runtimes.runtime import Runtime
from engine.step import Step


class Part(BaseModel):
    keep: float = Field(0.5, description="Which share of the weights stays.")


class Prune(Step):
    """Removes weights."""

    makes: ClassVar[str] = "pruned"
    after: ClassVar[str] = "shape-infer"
    way: Literal["rows", "blocks"]
    parts: list[Part] = []

    def run(self, out: Path, *, model: Path):
        """Do nothing."""


class Opaque:
    pass


class Own(BaseModel):
    model_config = {"arbitrary_types_allowed": True}
    thing: Opaque


class Toy(Runtime):
    name = "toy"
    options_model = Own
'''


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The schema of a machine on which a step and a runtime of other packages are installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "pruning.py").write_text(CODE)
    install(site, "recipe.steps", "prune", "pruning:Prune")
    install(site, "recipe.runtimes", "toy", "pruning:Toy")
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "engine", "schema"]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def of_names(schema, section):
    [form] = [form for form in schema["properties"][section]["anyOf"] if form.get("type") == "object"]
    return form["properties"]


def test_a_step_has_its_options_with_their_descriptions_and_nothing_else(printed):
    prune = of_names(printed, "steps")["prune"]
    assert prune["properties"]["way"]["enum"] == ["rows", "blocks"]
    assert (prune["required"], prune["additionalProperties"]) == (["way"], False)
    part = prune["properties"]["parts"]["items"]["$ref"].removeprefix("#/$defs/")
    assert printed["$defs"][part]["properties"]["keep"]["description"] == "Which share of the weights stays."


def test_a_runtime_whose_options_no_schema_describes_takes_any(printed):
    assert of_names(printed, "runtimes")["toy"] == {"type": "object"}


def test_each_reference_leads_to_a_definition(printed):
    references = [line.split('"')[3] for line in json.dumps(printed, indent=1).splitlines() if '"$ref"' in line]
    assert references
    assert {name.removeprefix("#/$defs/") for name in references} <= printed["$defs"].keys()


def test_a_machine_without_such_packages_has_the_schema_of_the_language():
    schema = recipe_schema()
    own = {name for name, step in registry.steps().items() if step.__module__.startswith("engine.")}
    for section, names in (("steps", own), ("runtimes", registry_of_runtimes.runtimes().keys())):
        [form] = [form for form in schema["properties"][section]["anyOf"] if form.get("type") == "object"]
        assert form.pop("properties", {}).keys() <= names
    schema["$defs"] = {
        name: each for name, each in schema["$defs"].items() if not name.startswith(("steps.", "runtimes."))
    }
    assert schema == editor_schema()
