"""The draft of a recipe: fields by dotted path."""

from engine.drafts.draft import Draft


def test_a_field_goes_beside_its_neighbours():
    draft = Draft({"model": {"source": "m"}})
    draft.put("model.task", "fill-mask", "as the config names it")
    assert draft.fields == {"model": {"source": "m", "task": "fill-mask"}}
    assert draft.comments == {"model.task": "as the config names it"}
