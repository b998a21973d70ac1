"""The quick start and the first block of README: scripts of nothing but their blocks, in new virtual environments."""

import html
import os
import re
import shutil
import socket
import subprocess

import documents
import pytest

BLOCKS = documents.run_by(__file__)
SETTINGS = ("RECIPE_", "VIRTUAL_ENV", "PYTHON", "CI", "XDG_")
CLONE = ("engine", "recipe_build", "recipes", "pyproject.toml", "constraints.txt", "README.md", "LICENSE")
HOUR = 3600


def script(page):
    """Return the blocks of a page as one script."""
    return "".join(block.text for block in BLOCKS if block.page.name == page)


def run(page, folder, home):
    """Run the script of a page as a user does who has nothing yet."""
    home.mkdir()
    own = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    own |= {"CLONE": str(documents.ROOT), "HOME": str(home)}
    done = subprocess.run(
        ["bash", "-e", "-c", script(page)],
        cwd=folder,
        env=own,
        capture_output=True,
        text=True,
        check=False,
        timeout=HOUR,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return f"{done.stderr}\n{done.stdout}"


def test_the_page_goes_from_the_installation_to_an_answer():
    text = script("quick-start.md")
    commands = ["pip install", "recipe new", "recipe check", "recipe build", "recipe serve", "recipe query", "kill"]
    places = [text.index(command) for command in commands]
    assert places == sorted(places)
    assert {block.page.name for block in BLOCKS} == {"quick-start.md", "README.md"}


@pytest.mark.slow
@pytest.mark.whole
def test_its_blocks_alone_end_in_an_answer_of_a_served_model(tmp_path):
    with socket.socket() as taken:
        assert taken.connect_ex(("127.0.0.1", 8000)) != 0, "another program has the port that the page names"
    (tmp_path / "empty").mkdir()
    printed = run("quick-start.md", tmp_path / "empty", tmp_path / "home")
    assert (tmp_path / "empty" / "build" / "model").is_dir()
    assert re.search(r"^sentence_embedding: 384 float32: -?0\.\d+", printed, flags=re.MULTILINE), printed


@pytest.mark.slow
@pytest.mark.whole
def test_the_block_of_the_readme_builds_a_package_in_a_clone(tmp_path):
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in CLONE:
        source = documents.ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, clone / name)
    printed = {without_figures(line) for line in run("README.md", clone, tmp_path / "home").splitlines()}
    shown = drawn_lines(documents.ROOT / "docs" / "pictures" / "build.svg")
    assert len(shown) > 15
    shown = [line for line in shown if not line.startswith(("$ ", "+ "))]  # jobs are shown so in a terminal only
    assert [line for line in shown if without_figures(line) not in printed] == []


def drawn_lines(picture):
    """Return the lines of text of a picture of a terminal."""
    texts = re.findall(r'<text class="recipe-r[^>]* y="([\d.]+)"[^>]*>(.*?)</text>', picture.read_text())
    by_height = {}
    for height, text in texts:
        by_height[height] = by_height.get(height, "") + html.unescape(text).replace("\xa0", " ")
    return [line for line in by_height.values() if line.strip()]


def without_figures(line):
    """Return a line without blanks and numbers, and without the samples in brackets: both depend on the CPU."""
    return "".join(re.sub(r"\([^)]*\)|\d+(\.\d+)?", "", line).split())
