"""Named pipes, sockets, devices, folders and links in the place of files: nothing hangs, each is repaired or told.

With `--whole`: each kind in each place, in some minutes. Otherwise a seeded sample.
"""

import itertools
import shutil

import pytest
from fire.odd_files import ODD, put

pytestmark = pytest.mark.slow

IN_STORE = {
    "a record": "records/*.json",
    "a file of an artifact": "artifacts/*/*.txt",
    "a folder of an artifact": "artifacts/*",
    "a file of the pool": "files/*/*",
    "a folder of the pool": "files/*",
    "a log": "logs/*.log",
    "a head": "heads/*.json",
    "the digests by stat row": "stat/*.json",
    "a snapshot": "snapshots/*",
    "the version of the layout": "format",
    "a place for work": "staging/leftover",
    "a folder in quarantine": "quarantine/leftover",
}


def sample(tier, *tables, count):
    cases = list(itertools.product(*tables))
    assert len(cases) > count
    return cases if tier.whole else tier.chance.sample(cases, count)


def test_odd_files_in_the_store_are_repaired(tier, field, tmp_path):
    for place, kind in sample(tier, IN_STORE, ODD, count=1):
        what = f"{kind} in the place of {place}"
        ground = field.undisturbed.copy(tmp_path / "ground")
        field.builders.build(ground)
        pattern = IN_STORE[place]
        path = next(iter(sorted(ground.cache.glob(pattern))), ground.cache / pattern)
        put(kind, path)
        builder = field.builders.build(ground, expect=None)
        if builder.code:
            refused_once(builder, what)
            shutil.rmtree(ground.folder)
            continue
        assert field.builders.delivered(builder) == field.expected, what
        # With another word in the command line no snapshot answers.
        builder = field.builders.build(ground, "--keep-going", expect=None)
        if builder.code:
            refused_once(builder, what)
            shutil.rmtree(ground.folder)
            continue
        assert field.builders.delivered(builder) == field.expected, what
        field.builders.verify(ground, expect=None)
        assert field.builders.verify(ground)["damaged"] == [], what
        assert field.builders.delivered(field.builders.build(ground, "--keep-going")) == field.expected, what
        shutil.rmtree(ground.folder)


def refused_once(builder, what):
    text = builder.stdout + builder.stderr
    assert builder.code in (1, 2), f"{what}\n{text}"
    assert "recipe itself" not in text, f"{what}\n{text}"
    assert len({error["what"] for error in builder.errors()}) == 1, f"{what}\n{text}"


READ = ("a record", "a head", "a log", "a file of an artifact")
COMMANDS = ("why", "show", "logs", "check", "build --dry-run", "cache stats", "cache ls", "cache gc --dry-run")


def test_no_command_hangs_on_odd_files_in_the_store(tier, field, tmp_path):
    for command, place, kind in sample(tier, COMMANDS, READ, ODD, count=1):
        ground = field.undisturbed.copy(tmp_path / "ground")
        put(kind, min(ground.cache.glob(IN_STORE[place])))
        words = command.split()
        recipe = () if words[0] == "cache" else ("r.yaml",)
        builder = field.builders.start((*words, *recipe, "--cache", str(ground.cache)), ground).wait()
        assert builder.code in (0, 1, 2), f"{command}, {kind} in the place of {place}: {builder.stderr}"
        assert "recipe itself" not in builder.stderr, f"{command}, {kind} in the place of {place}: {builder.stderr}"
        shutil.rmtree(ground.folder)
