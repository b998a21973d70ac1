"""The table of architectures: a row for each trial, with the reason in words, and rows for what was not tried."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path

import architecture_trials
from architecture_trials import CPU_SECONDS, Pair, Trial, pairs

from engine import tasks
from engine.kit.checkpoints import exportable, model_inputs
from engine.kit.checkpoints.exportable import NONE, Exportability
from engine.kit.reference import families
from engine.text import display

BARE = re.compile(
    r"\x1b|^\w+Error\b(?!.*\(raised by)|: (KeyError|IndexError): '?\w+'?$"
    r"|cannot (run|open)[^:]*$|step \d/\d|<class '"
)
"""Forms that no reason may have: a bare error class, colours, "cannot run" without a reason, advice of an exporter."""
ALONE = re.compile(r"^(torchscript: |dynamo: )?('[^']*'|\d+|\w*Error:?)$")
"""A line of an error that is nothing but the text of a KeyError, or the name of a class."""
_IN_WORDS = (
    (r"aten::histc", "a mixture of experts: ONNX has no operator for the choice of experts (aten::histc)"),
    (r"grouped_mm", "a mixture of experts: ONNX has no operator for grouped matrix products (grouped_mm)"),
    (r"get_conv_state|store_compression|update_indexer|cache of its", "its past is more than keys and values"),
    (r"takes no cache|leaves its cache empty", "its past is not keys and values, as those of attention are"),
)
"""A pattern in what the steps said -> the reason in words."""


def rows(trials: Iterable[Trial], known: Iterable[Exportability] = ()) -> list[Exportability]:
    """Return a row for each trial, each pair that was not tried, and each model type without a class for our tasks.

    A pair without a trial keeps its row among the `known` ones.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    by_pair = {trial.pair: trial for trial in trials}
    kept = {(each.model_type, each.task, each.architecture): each for each in known}
    table = []
    for pair in pairs():
        old = None if pair in by_pair else kept.get((pair.model_type, pair.task, pair.architecture))
        table.append(old or row(pair, by_pair.get(pair)))
    return [*table, *map(classless, _without(CONFIG_MAPPING_NAMES, table))]


def classless(model_type: str) -> Exportability:
    """Return the row of a model type that transformers has no class of for any of our tasks."""
    return Exportability(model_type, NONE, NONE, "fails", "transformers has no class of it for a task of a text")


def text(version: str, table: list[Exportability]) -> str:
    """Return the table as the text of its file."""
    fields = sorted((row.model_type, row.task, row.architecture, row.verdict, row.reason) for row in table)
    lines = [f"transformers {version}", *("\t".join(row).rstrip("\t") for row in fields)]
    return "\n".join(lines) + "\n"


def _without(model_types: Collection[str], table: Collection[Exportability]) -> list[str]:
    return sorted(set(model_types) - {row.model_type for row in table})


def row(pair: Pair, trial: Trial | None) -> Exportability:
    """Return the row of a pair from its trial, or from none."""
    named = (pair.model_type, pair.task, pair.architecture)
    if more := more_than_text(pair):
        return Exportability(*named, "fails", more)
    if trial is None:
        return Exportability(*named, "untried", "nobody tried it yet")
    if trial.ended == "done":
        return Exportability(*named, "works")
    if trial.ended in ("tiny", "original") and (trial.error.get("bare") or "ended with" in trial.error["what"]):
        return Exportability(*named, "untried", "no small random model of it that runs on text could be generated")
    if "ended with" in trial.error["what"]:
        return Exportability(*named, "untried", f"its trial did not end within {CPU_SECONDS} seconds of computing")
    return Exportability(*named, "fails", reason(trial))


def more_than_text(pair: Pair) -> str:
    """Return why a class is refused that takes more than a text, whatever its trial says; "" for any other class."""
    import transformers

    if tasks.generates(pair.task):
        return ""
    try:
        parameters = families.parameters(getattr(transformers, pair.architecture))
    except (ImportError, AttributeError):  # a class that needs a library which is not installed
        return ""
    beyond = model_inputs.beyond_text(parameters, {"default_language": "en_XX"})
    if not beyond or model_inputs.TOKENS not in parameters:
        return ""
    return f"{pair.architecture} takes more than a text: {', '.join(beyond)}"


def reason(trial: Trial) -> str:
    """Return why a trial failed, in words, on one line."""
    facts = [fact for fact in trial.error["facts"] if "not tried" not in fact]
    whole = "; ".join([trial.error["what"], *facts])
    for pattern, words in _IN_WORDS:
        if re.search(pattern, whole):
            return words
    few = facts if "cannot be exported to ONNX" in trial.error["what"] else [trial.error["what"], *facts[:1]]
    tidy = "; ".join(fact for fact in few if not fact.startswith("config.json has architectures"))
    return display.one_line(
        re.sub(r"\s*\[Caused by.*?(?=; dynamo|$)|\[ONNXRuntimeError\] : \d+ : \w+ : ", "", tidy), 240
    )


def main() -> None:
    """Try what FILE does not list yet, keep the trials there, and write the table: `FILE [TASK ...]`."""
    import transformers

    path = Path(sys.argv[1])
    architecture_trials.resume(path, workers=2, tasks=sys.argv[2:])
    is_of_it = exportable.version() == transformers.__version__
    known = chain.from_iterable(exportable.rows().values()) if is_of_it else ()
    table = text(transformers.__version__, rows(architecture_trials.read(path), known))
    exportable.TABLE.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
