"""Splitter: a python model before the ensemble, for a model that answers a row otherwise beside other rows."""

# Triton joins requests of equal shapes only, so that its own batches never pad a text. A request with several texts is
# padded by the package's tokenizer, and so are the windows of one long text.

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import StepError
from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching
from engine.kit.triton import parts, served
from engine.kit.triton.parts import Part
from engine.kit.triton.serving import Serving
from engine.kit.triton.text import DOC_STRIDE
from engine.runtimes.served import Served

_INSTANCES = 4
"""The processes of the splitter, each of which waits for the answer to one row."""


def unjoined(model: Served, joins: RowBatching) -> Served:
    """Return how a model is served whose rows must not stand in one batch; `model` itself where they may."""
    if joins is not RowBatching.ALONE:
        return model
    router = model.router
    if router is not None:
        router = router._replace(models={end: unjoined(each, joins) for end, each in router.models.items()})
    return model._replace(joined=False, router=router)


def in_front(listed: Sequence[Part], joins: RowBatching, serving: Serving) -> list[Part]:
    """Return the models of a package, with a python model as the entry that sends the ensemble one row at a time.

    A package without an ensemble takes tensors: what stands in one request is one input of the model. Raises StepError
    where the recipe asks for something that joins rows.
    """
    *others, entry = listed
    if joins is not RowBatching.TOGETHER:
        entry.config.parameters[parts.ROWS].string_value = joins.value
    if joins is RowBatching.TOGETHER or entry.config.platform != "ensemble":
        return list(listed)
    stride = serving.answers.get(DOC_STRIDE)
    for field, value in batching.mixing(layout=serving.layout, padding=serving.padding, doc_stride=stride).items():
        raise StepError(f"{field}: {value} is not possible: {joins.note()}", hint=f"leave {field} out")
    name = entry.config.name
    front = parts.python(
        name,
        entry.config,
        takes=parts.tensors(entry.config.input, entry.config),
        gives=parts.tensors(entry.config.output, entry.config),
        work=served.SPLIT,
        settings={"model": f"{name}_row", "outputs": [output.name for output in entry.config.output]},
        instances=_INSTANCES,
    )
    for parameter, value in entry.config.parameters.items():
        front.config.parameters[parameter].CopyFrom(value)
    entry.config.ClearField("parameters")
    entry.config.name = f"{name}_row"
    return [*others, entry, front]
