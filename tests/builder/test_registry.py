"""The steps of this program by their names."""

from types import ModuleType

import pytest

from engine.builder import registry
from engine.errors import StepError
from engine.step import Step


def test_each_module_is_a_step_with_the_modules_name():
    named = {name: kind.__module__ for name, kind in registry.steps().items() if kind.__module__.startswith("engine.")}
    assert named == {name.replace("_", "-"): f"engine.steps.{name}" for name in registry.ours()}


def test_a_module_without_a_step_of_its_own_is_refused():
    module = ModuleType("elsewhere")
    module.Step = Step
    with pytest.raises(StepError, match="elsewhere holds 0 steps"):
        registry._step_in(module)
