"""Every command with streams that are closed or full, in a folder that is gone, and at the limits of the system.

With `--whole`: each command under each circumstance, in some minutes. Otherwise a seeded sample.
"""

import itertools
import json
import signal
import subprocess
from pathlib import Path

import pytest
from fire.builders import children

from engine.commands import COMMANDS

pytestmark = pytest.mark.slow

NOBODY = "127.0.0.1:1"
"""An address at which nothing answers."""
LINES = {
    "build (no-op)": ("build", "r.yaml", "--json"),
    "build": ("build", "r.yaml", "--keep-going"),
    "build --dry-run": ("build", "r.yaml", "--dry-run"),
    "why": ("why", "r.yaml"),
    "graph": ("graph", "r.yaml"),
    "new": ("new", "gone"),
    "check": ("check", "r.yaml"),
    "lock": ("lock", "r.yaml"),
    "show": ("show", "r.yaml"),
    "show --json": ("show", "r.yaml", "--json"),
    "diff": ("diff", "r.yaml"),
    "history": ("history", "r.yaml"),
    "report": ("report", "r.yaml", "-o", "report.html"),
    "list": ("list",),
    "serve": ("serve", "gone.yaml"),
    "query": ("query", NOBODY),
    "loadtest": ("loadtest", NOBODY),
    "prove": ("prove", "gone.yaml"),
    "logs": ("logs", "r.yaml"),
    "layers": ("layers", "r.yaml"),
    "tune": ("tune", "r.yaml"),
    "bisect": ("bisect", "r.yaml"),
    "cache stats": ("cache", "stats"),
    "cache ls": ("cache", "ls"),
    "cache verify": ("cache", "verify"),
    "cache gc": ("cache", "gc", "--dry-run"),
    "cache push": ("cache", "push", "r.yaml"),
    "cache pull": ("cache", "pull", "r.yaml"),
    "cache trust": ("cache", "trust", "gone"),
    "package": ("package", "r.yaml"),
    "publish": ("publish", "r.yaml", "repository", "--dry-run"),
    "gpus": ("gpus",),
    "steps": ("steps",),
    "schema": ("schema",),
    "doctor": ("doctor",),
    "completion": ("completion", "bash"),
    "--help": ("--help",),
    "--version": ("--version",),
    "a command that does not exist": ("frobnicate",),
}
WITHOUT_STORE = {"query", "loadtest", "gpus", "steps", "schema", "doctor", "completion", "--help", "--version",
                 "frobnicate"}  # fmt: skip
STREAMS = {
    "output closed": {"close": [1]},
    "messages closed": {"close": [2]},
    "input closed": {"close": [0]},
    "all closed": {"close": [0, 1, 2]},
    "output full": {"full": [1]},
    "messages full": {"full": [2]},
    "both full": {"full": [1, 2]},
    "folder gone": {"lost": True},
}
LIMITS = {
    "10 open files": {"limits": {"NOFILE": 10}},
    "13 open files": {"limits": {"NOFILE": 13}},
    "files of 0 bytes": {"limits": {"FSIZE": 0}},
    "files of 2000 bytes": {"limits": {"FSIZE": 2000}},
    "no home": {"environment": {"HOME": None}},
    "a home that is missing": {"environment": {"HOME": "/nonexistent"}},
    "a home that is a device": {"environment": {"HOME": "/dev/null"}},
    "a scratch folder that is missing": {"environment": {"TMPDIR": "/nonexistent"}},
    "no PATH": {"environment": {"PATH": None}},
    "plain ASCII": {"environment": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}},
    "Python without docstrings and assertions": {"environment": {"PYTHONOPTIMIZE": "2"}},
    "a terminal that nobody knows": {"environment": {"TERM": "unknown", "COLUMNS": "-1", "LINES": "x"}},
}


def test_the_table_has_every_command():
    assert {words[0] for words in LINES.values()} >= set(COMMANDS)


@pytest.fixture(scope="module")
def ready(field, tmp_path_factory):
    """A ground that is up to date, with what each command line gives when nothing is wrong."""
    ground = field.undisturbed.copy(tmp_path_factory.mktemp("ready") / "ground")
    usual = {}

    def start(line, **circumstances):
        words = LINES[line]
        if words[0] not in WITHOUT_STORE:
            words = (*words, "--cache", str(ground.cache))
        if words[0] == "build" and "--dry-run" not in words:
            words = (*words, "-o", str(ground.out))
        return field.builders.start(words, ground, **circumstances).wait()

    def expected(line):
        if line not in usual:
            start(line)  # leaves a snapshot, and a lock that is not written twice
            usual[line] = start(line)
        return usual[line]

    return start, expected


def cases(tier, table, count):
    pairs = list(itertools.product(LINES, table))
    assert len(pairs) > count
    return pairs if tier.whole else tier.chance.sample(pairs, count)


def is_clear(builder, what):
    text = f"{what}\nexit {builder.code}\n{builder.stdout[-500:]}\n{builder.stderr}"
    assert isinstance(builder.code, int), text
    assert 0 <= builder.code <= 4, text
    for words in ("Traceback", "error in recipe itself", "Exception ignored", "Fatal Python"):
        assert words not in builder.stderr + builder.stdout, text
    return text


def test_streams_and_folders_that_are_gone(tier, ready):
    start, expected = ready
    for line, name in cases(tier, STREAMS, 3):
        usual = expected(line)
        builder = start(line, **STREAMS[name])
        text = is_clear(builder, f"{line}, {name}")
        if name == "folder gone":
            assert builder.code == 1, text
            assert builder.stderr.count("error: the working folder does not exist any more") == 1, text
        elif "output" in name and "full" in name and usual.stdout:
            assert builder.code == 1, text
            assert builder.stderr.endswith("error: the output cannot be written: No space left on device\n"), text
        elif name == "both full" and usual.stdout:
            assert builder.code == 1, text
        else:
            assert builder.code == usual.code, text
        if name in ("messages closed", "messages full", "input closed"):
            assert bool(builder.stdout) == bool(usual.stdout), text


def test_limits_and_environments(tier, ready):
    start, expected = ready
    for line, name in cases(tier, LIMITS, 1):
        usual = expected(line)
        builder = start(line, **LIMITS[name])
        text = is_clear(builder, f"{line}, {name}")
        if "environment" in LIMITS[name]:
            assert builder.code == usual.code, text
        elif builder.code not in (0, usual.code) and builder.stderr:
            assert any(words in text for words in ("open files", "larger than", "File too large")), text
        if "--json" in LINES[line] and builder.code == 0:
            whole = builder.stdout if builder.stdout.startswith("[") else f"[{','.join(builder.stdout.splitlines())}]"
            assert json.loads(whole), text


@pytest.mark.whole
@pytest.mark.parametrize("limit", [{"NOFILE": 12}, {"FSIZE": 50_000}, {"FSIZE": 500_000}], ids=str)
def test_a_build_at_a_limit_fails_with_the_cause_and_goes_on_without_it(limit, field, tmp_path):
    ground = field.template.copy(tmp_path / "ground")
    builder = field.builders.start((*ground.words, "-j2"), ground, limits=limit).wait(expect=1)
    text = is_clear(builder, str(limit))
    [hint] = {error["hint"] for error in builder.errors()}
    assert ("ulimit -n" if "NOFILE" in limit else "ulimit -f") in hint, text
    committed = ground.committed()
    mark = len(ground.lines())
    assert field.builders.delivered(field.builders.build(ground)) == field.expected
    assert not committed & set(ground.work(since=mark))
    assert field.builders.verify(ground)["damaged"] == []
    assert ground.leftovers() == []


def test_a_reader_that_goes_away_ends_a_command_without_a_word(field):
    command = f"{field.builders.command} gpus 2>messages | head -1; echo $?; cat messages"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=field.builders.project.folder,
        env=field.builders.project.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0", done.stdout


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
@pytest.mark.sample(1)
def test_a_build_whose_terminal_goes_away_ends_its_workers_and_leaves_nothing(number, field, tmp_path):
    ground = field.template.copy(tmp_path / "ground")
    builder = field.builders.start((*ground.words, "-j1"), ground)
    while not any(line.startswith("begin") for line in ground.lines()):
        assert builder.poll() is None, builder.stdout
    started = children(builder.pid)
    builder.signal(number)
    builder.wait(expect=130)
    assert builder.events[-1]["state"] == "interrupted"
    assert ground.leftovers() == []
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert field.builders.delivered(field.builders.build(ground)) == field.expected
