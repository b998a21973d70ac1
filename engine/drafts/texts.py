"""Texts: the samples that a new recipe starts with, as the lines of a .jsonl file."""

from __future__ import annotations

import json

from engine.kit.inputs import samples
from engine.tasks import Task

_COUNT = 16
_QUESTIONS = (
    ("When does the library open?", "The library opens at nine and closes at six. On Sundays it stays closed."),
    ("Who repaired the bridge?", "The old bridge was repaired by a firm from Lyon after the flood of 1957."),
    ("Where does the river begin?", "The river begins in the northern hills, and reaches the sea near the port."),
    ("What did the parcel hold?", "The parcel arrived on Monday. It held two books and a letter from her aunt."),
    ("How long is the tunnel?", "The tunnel, which is 12 kilometres long, was opened in 1998."),
    ("Why was the match stopped?", "The match was stopped after an hour because of heavy rain."),
    ("Which team won?", "The home team led until the last minute, but the guests won by one goal."),
    ("What grows on the terraces?", "On the terraces above the village, farmers grow lemons and almonds."),
)


def lines(task: Task) -> bytes:
    """Return samples for a task, one JSON object a line."""
    rows: list[dict[str, str]]
    if task.context:
        rows = [{"question": question, "context": context} for question, context in _QUESTIONS]
    else:
        rows = [{"text": each.text} for each in samples.built_in()[:_COUNT]]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
