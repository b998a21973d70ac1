"""The table of architectures is in step with transformers, holds for a sample of them, and gives reasons in words."""

import os
import re
import subprocess
import sys
from pathlib import Path

import architecture_table
import architecture_trials
import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from engine import tasks
from engine.kit.checkpoints import exportable

SAMPLE = (("bert", "fill-mask"), ("mamba", "text-generation"))
"""Pairs that every run of the tests tries: one that works, and one that fails."""


CONSTRAINTS = Path(__file__).parents[3] / "constraints.txt"
of_the_tables_transformers = pytest.mark.skipif(
    exportable.installed().split(".")[:2] != exportable.version().split(".")[:2],
    reason=f"the table is of transformers {exportable.version()}",
)


def exportable_rows():
    return [row for rows in exportable.rows().values() for row in rows]


@pytest.fixture(scope="module")
def every():
    return exportable_rows()


def test_the_table_is_of_the_transformers_that_is_tested():
    pinned = re.search(r"^transformers==(\S+)$", CONSTRAINTS.read_text(), re.MULTILINE)
    assert pinned is not None
    assert exportable.version() == pinned[1], "try the architectures again: CONTRIBUTING.md says how"


@of_the_tables_transformers
def test_every_model_type_of_transformers_and_every_class_for_a_task_has_a_row(every):
    assert set(CONFIG_MAPPING_NAMES) <= set(exportable.rows())
    listed = {(row.model_type, row.task, row.architecture) for row in every}
    pairs = {(pair.model_type, pair.task, pair.architecture) for pair in architecture_trials.pairs()}
    assert len(pairs) > 1000
    assert pairs == {key for key in listed if key[1] != "-"}


def test_a_model_type_is_known_from_the_table_or_from_the_source_of_transformers(monkeypatch):
    monkeypatch.setattr(exportable, "rows", lambda: {"of the table": ()})
    assert exportable.is_known("of the table")
    assert exportable.is_known("bert")
    assert not exportable.is_known("brand-new")
    assert not exportable.is_known(["bert"])


def test_most_architectures_for_text_were_tried(every):
    assert sum(row.verdict == "works" for row in every) > 450
    assert {row.task for row in every if row.verdict == "works"} == {
        task.name for task in tasks.every() if task.takes_only_texts and task.auto_class
    }


def test_a_reason_is_given_in_words_wherever_something_fails(every):
    assert all(bool(row.reason) == (row.verdict != "works") for row in every)
    assert [row for row in every if architecture_table.BARE.search(row.reason)] == []


@pytest.mark.parametrize("text", ["KeyError: 'images'", "a: \x1b[96mb", "IndexError: x", "ONNX Runtime cannot run"])
def test_bare_errors_are_seen(text):
    assert architecture_table.BARE.search(text)


@of_the_tables_transformers
def test_what_is_not_tried_again_keeps_its_row(every):
    assert architecture_table.text("5.0", architecture_table.rows([], every)) == architecture_table.text("5.0", every)


def test_the_table_is_written_as_it_is_read(every):
    assert architecture_table.text(exportable.version(), every) == exportable.TABLE.read_text()


@pytest.mark.parametrize("task", [task.name for task in tasks.every() if task.takes_only_texts and task.auto_class])
def test_each_task_has_well_known_architectures_that_work(task):
    assert len(exportable.others(task)) == 3


def test_of_two_classes_for_a_task_the_checkpoints_own_is_chosen():
    whole, encoder = (exportable.row("t5", "feature-extraction", name) for name in ("T5Model", "T5EncoderModel"))
    assert (whole.architecture, encoder.architecture) == ("T5Model", "T5EncoderModel")
    assert (whole.verdict, encoder.verdict) == ("fails", "works")
    assert exportable.row("t5", "feature-extraction", "Other") == whole
    assert exportable.row("bert", "no-such-task", None) is None


def differing(trials):
    """Return the rows of trials that differ from the table, after a look at the words of their errors."""
    for trial in trials:
        if trial.ended not in ("tiny", "original"):
            assert not trial.error.get("bare"), trial
            assert not architecture_table.BARE.search(architecture_table.reason(trial) if trial.error else ""), trial
            lines = [trial.error.get("what", ""), *trial.error.get("facts", ())]
            assert not any("\x1b" in line or architecture_table.ALONE.search(line) for line in lines), trial
    rows = [architecture_table.row(trial.pair, trial) for trial in trials]
    listed = {(row.model_type, row.task, row.architecture): row.verdict for row in exportable_rows()}
    return {row for row in rows if listed[row.model_type, row.task, row.architecture] != row.verdict}


@of_the_tables_transformers
@pytest.mark.slow
@pytest.mark.parametrize("model_type_and_task", SAMPLE, ids="/".join)
def test_a_fixed_sample_of_rows_is_still_true(model_type_and_task, tmp_path):
    [pair] = [pair for pair in architecture_trials.pairs() if (pair.model_type, pair.task) == model_type_and_task]
    assert differing([architecture_trials.here(pair, tmp_path, brief=True, fast=True)]) == set()


@of_the_tables_transformers
@pytest.mark.slow
@pytest.mark.whole
def test_the_table_is_what_all_trials_give(tmp_path):
    """Hours on two cores. `python tests/support/architecture_table.py FILE` keeps the trials and writes the table."""
    file = tmp_path / "trials.jsonl"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, architecture_trials.__file__, str(file), "2"], check=True, env=environment)
    trials = architecture_trials.read(file)
    assert len(trials) == len(architecture_trials.pairs())
    assert differing(trials) == set()
