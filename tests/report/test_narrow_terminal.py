"""In a terminal of 80 columns, no line of a command's table is longer."""

import re
from types import SimpleNamespace

import models
import pytest
from client.test_load import figures
from client.test_timed_requests import AFTER, ENTRY
from program import Program
from tiny_project import OF_ONNX, RECIPE, SAMPLES

from engine import commands
from engine.client import timed_requests
from engine.client.figures import QueryFigures
from engine.commands import loadtest, query
from engine.system import interrupts, streams

COLUMNS = 80
NAME = "name: sentiment-of-film-reviews-${precision}-${profiles.0.sequence.opt}\n"
MATRIX = NAME + "matrix: {precision: [fp32, int8], profiles.0.sequence.opt: [8, 16]}\n"
LINES = {
    "build many.yaml -v": "speed-up",
    "show tiny.yaml": "speed-up",
}
"""Commands in a real terminal, each with words that its table has."""
TABLES = {
    "build other.yaml --dry-run": "cost",
    "show many.yaml": "agreement",
    "diff tiny.yaml many.yaml::sentiment-of-film-reviews-fp32-16": "jobs differ",
    "history tiny.yaml": "p50",
    "history many.yaml": "cosine",
    "why tiny.yaml": "fetch",
    "why other.yaml": "new",
    "cache ls": "package",
    "cache stats": "artifacts",
    "gpus": "memory by",
    "steps": "package",
    "doctor": "python",
    "graph many.yaml": "<-",
}
"""Other commands, each with words that its table has."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("narrow")
    models.classifier_with_tokenizer(folder / "model")
    (folder / "samples.jsonl").write_text(SAMPLES)
    recipe = RECIPE.replace("model: {source: model}\n", OF_ONNX).replace("[1, 16, 32]", "{min: 1, opt: 16, max: 32}")
    (folder / "tiny.yaml").write_text(recipe)
    (folder / "many.yaml").write_text(recipe.replace("name: tiny\n", MATRIX).replace("precision: int8\n", "", 1))
    (folder / "other.yaml").write_text(recipe.replace("name: tiny", "name: other").replace("max: 32", "max: 31"))
    Program(folder)("build", "tiny.yaml", "many.yaml", expect=0)
    return folder


@pytest.fixture
def eighty(monkeypatch, capsys):
    """Let tables be laid out as in a terminal of 80 columns; return a function that reads the printed lines."""
    monkeypatch.setattr(streams, "columns", lambda: COLUMNS)
    return lambda: capsys.readouterr().out.splitlines()  # noqa: PLW0108 - each call reads what was printed since


def wide(lines):
    """Return the lines that do not fit."""
    return [line for line in lines if len(line) > COLUMNS]


@pytest.mark.slow
@pytest.mark.parametrize("command", LINES)
def test_the_lines_of_a_command_fit(folder, command):
    pytest.importorskip("pyte", reason="pyte, the terminal in memory, is not installed: the extra `dev-terminal`")
    import terminal

    environment = {"RECIPE_TRUST_CACHE": "1"}
    narrow = terminal.record(command.split(), folder, columns=COLUMNS, rows=400, environment=environment)
    text = re.sub(r"\x1b\[[0-9;]*m|\r", "", narrow.raw.decode())
    lines = [line.rstrip() for line in text.split("\n") if "\x1b" not in line]  # without the live lines of a build
    assert LINES[command] in " ".join(" ".join(lines).split())
    assert wide(lines) == []


@pytest.mark.slow
def test_the_tables_of_other_commands_fit(folder, eighty, monkeypatch):
    """Their process is that of the tests, because most of a command's time goes into imports."""
    monkeypatch.chdir(folder)
    too_wide = {}
    for command, words in TABLES.items():
        arguments = commands.parse(command.split())
        try:
            assert arguments.run(arguments) == 0
        finally:
            interrupts.restore()  # as the end of the program does
        lines = eighty()
        text = " ".join(" ".join(lines).split())
        assert words in text, command
        assert "about 0.0 s" not in text, command
        too_wide[command] = wide(line for line in lines if re.search(r"\S  +\S", line))  # a terminal folds sentences
    assert not any(too_wide.values()), too_wide


def test_the_figures_of_a_load_test_fit(eighty):
    arguments = SimpleNamespace(json=False, url="localhost:8000")
    loadtest._print(SimpleNamespace(name="whole"), iter([figures(), figures()]), arguments)
    lines = eighty()
    assert [line.split()[0] for line in lines[1:]] == ["clients", "8", "8"]
    assert wide(lines) == []


def test_the_statistics_of_a_query_fit(eighty):
    statistics = timed_requests.statistics(ENTRY, {}, AFTER, [0.005])
    query._print_times(ENTRY, QueryFigures(first_ms=1.0, latency=None, statistics=statistics), protocol="http")
    lines = eighty()
    assert "ms of a request" in lines[1]
    assert wide(lines) == []
