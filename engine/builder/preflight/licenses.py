"""Licences: whether the recipe's policy allows the licences of a model and a tokenizer that are on this machine."""

from __future__ import annotations

from engine.builder import sources
from engine.builder.preflight.checked_variant import CheckedVariant
from engine.kit.checkpoints import licenses
from engine.recipe.licenses import Licensed
from engine.step import Source


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where the policy refuses a licence; `fetch` judges what is not here yet."""
    recipe = subject.variant.loaded.recipe
    names = recipe.policy.licenses
    if names is None:
        return
    fetched = {each.role: each for each in (subject.facts.licenses if subject.facts is not None else ())}
    for role, uri in {"model": recipe.model.source, "tokenizer": recipe.model.tokenizer}.items():
        about = None if uri is None else _of(role, uri) or fetched.get(role)
        refusals = [] if about is None else about.refusals(names)
        if refusals:
            item = "source" if role == "model" else "tokenizer"
            raise subject.variant.loaded.error(
                f"policy.licenses refuses the model: {refusals[0]}",
                "model",
                item,
                facts=(*refusals[1:], f"allowed: {', '.join(names)}"),
                hint="add the licence to policy.licenses, or take another model",
            )


def _of(role: str, uri: str) -> Licensed | None:
    """Return what a source on this machine says about its licence; None for a source on a hub."""
    source = Source(uri=uri, part="license")
    place = sources.place_of(source)
    return None if place is None else licenses.of_source(role, source, place).about
