"""The quick start: a script of nothing but its blocks, in an empty folder and a new virtual environment."""

import os
import re
import subprocess

import documents
import pytest

from engine.server import ports

BLOCKS = documents.run_by(__file__)
SETTINGS = ("RECIPE_", "VIRTUAL_ENV", "PYTHON", "CI", "XDG_")


def script():
    """Return the blocks of the page as one script."""
    assert {block.page.name for block in BLOCKS} == {"quick-start.md"}
    return "".join(block.text for block in BLOCKS)


def test_the_page_goes_from_the_installation_to_an_answer():
    text = script()
    commands = ["pip install", "recipe new", "recipe check", "recipe build", "recipe serve", "recipe query", "kill"]
    places = [text.index(command) for command in commands]
    assert places == sorted(places)


@pytest.mark.slow
@pytest.mark.whole
def test_its_blocks_alone_end_in_an_answer_of_a_served_model(tmp_path):
    assert ports.free().http == 8000, "another program has the port that the page names"
    folder = tmp_path / "empty"
    folder.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    own = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    own |= {"CLONE": str(documents.ROOT), "HOME": str(home)}
    done = subprocess.run(
        ["bash", "-e", "-c", script()], cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=3600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "build" / "model").is_dir()
    assert re.search(r"^sentence_embedding: 384 float32: -?0\.\d+", done.stdout, flags=re.MULTILINE), done.stdout
