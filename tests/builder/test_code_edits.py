"""Edits of the program's own files: those of messages, progress and reports re-key no job, those of work do."""

from functools import cache

import code_edits
import pytest
from edited_code import EditedCode, steps

EVERY = 16
"""Of the edits, one in so many is tried by default; `--whole` tries all."""


def pytest_generate_tests(metafunc):
    if "edit" in metafunc.fixturenames:
        table = getattr(code_edits, metafunc.cls.TABLE)
        chosen = table if metafunc.config.getoption("whole") else table[::EVERY]
        names = [f"{edit[-3]}-{edit[-2][:24]}" for edit in chosen]
        metafunc.parametrize("edit", chosen, ids=names)


@pytest.fixture(scope="module")
def all_steps():
    return steps("minilm_t4.yaml", "minilm_cpu.yaml")


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    return EditedCode(tmp_path_factory.mktemp("edited"))


@pytest.fixture(scope="module")
def before(edited, all_steps):
    return cache(lambda name: edited.digest(all_steps[name]))


def test_the_tables_are_long_enough():
    assert len(set(code_edits.WORDS_OF_ENGINES)) >= 40
    assert len(set(code_edits.WORK_OF_ENGINES)) >= 40
    assert len(set(code_edits.WORDS)) >= 20
    assert len(set(code_edits.WORK)) >= 15


class TestWordsOfEngines:
    TABLE = "WORDS_OF_ENGINES"

    def test_an_edit_of_messages_progress_or_reports_re_keys_no_engine(self, edit, edited, all_steps, before):
        assert edited.digest(all_steps["trt-build"], edit) == before("trt-build")


class TestWorkOfEngines:
    TABLE = "WORK_OF_ENGINES"

    def test_an_edit_of_what_builds_an_engine_re_keys_it(self, edit, edited, all_steps, before):
        assert edited.digest(all_steps["trt-build"], edit) != before("trt-build")


class TestWords:
    TABLE = "WORDS"

    def test_an_edit_of_messages_or_reports_does_not_re_key_the_step(self, edit, edited, all_steps, before):
        step, *texts = edit
        assert edited.digest(all_steps[step], tuple(texts)) == before(step)


class TestWork:
    TABLE = "WORK"

    def test_an_edit_of_work_or_of_a_result_re_keys_the_step(self, edit, edited, all_steps, before):
        step, *texts = edit
        assert edited.digest(all_steps[step], tuple(texts)) != before(step)
