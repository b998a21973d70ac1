"""Feasibility: refuses, before the build, a recipe that the hardware or the model does not allow."""

from typing import TYPE_CHECKING

from engine.system import late

if TYPE_CHECKING:
    from engine.feasibility.recipe_checks import check, check_model
    from engine.feasibility.shapes import profiles, usual

__all__ = ["check", "check_model", "profiles", "usual"]

__getattr__ = late.names(__name__, recipe_checks="check check_model", shapes="profiles usual")
