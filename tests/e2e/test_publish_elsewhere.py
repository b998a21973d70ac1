"""The commands of docs/publish-elsewhere.md: those of this project run, those of others are known to their programs."""

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "publish-elsewhere.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
LINES = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]
RUN = ("recipe lock", "recipe build", "recipe show", "tar ", "hf ")
NOT_HERE = {"mlflow artifacts": "MLflow is in no extra of this project; the page says with which version it was tried"}


def test_each_command_runs_here_or_has_a_reason():
    starts = (*RUN, *NOT_HERE)
    assert LINES
    assert [line for line in LINES if not line.startswith(starts)] == []
    assert [start for start in starts if not any(line.startswith(start) for line in LINES)] == []


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("recipe ")])
def test_the_options_of_our_commands_exist(line, empty):
    words = shlex.split(line.partition(">")[0], comments=True)[1:]
    done = empty(*words, expect=2)
    assert "unrecognized arguments" not in done.stderr
    assert "recipes/minilm_cpu.yaml" in done.stderr


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("hf ")])
def test_the_hub_s_program_knows_each_option(line):
    hf = Path(sys.executable).with_name("hf")
    if not hf.exists():
        pytest.skip("huggingface_hub is not installed (the extra `cpu`)")
    words = shlex.split(line)
    known = subprocess.run([hf, words[1], "--help"], capture_output=True, text=True, check=True).stdout
    options = [word for word in words if word.startswith("--")]
    assert [option for option in options if option not in known] == []
    assert len([word for word in words[2:] if not word.startswith("--")]) >= 1


def test_the_command_for_an_archive_writes_the_same_bytes_twice(tmp_path):
    [line] = [line for line in LINES if line.startswith("tar ")]
    (tmp_path / "build" / "minilm" / "1").mkdir(parents=True)
    (tmp_path / "build" / "minilm" / "1" / "model.onnx").write_bytes(b"model")
    (tmp_path / "build" / "minilm" / "NOTICE").write_text("notice")
    both = []
    for _ in range(2):
        (tmp_path / "build" / "minilm" / "NOTICE").touch()
        subprocess.run(shlex.split(line), cwd=tmp_path, check=True)
        both.append((tmp_path / "minilm.tar.gz").read_bytes())
    assert both[0] == both[1]


def test_the_python_of_the_page_parses():
    blocks = [block for kind, block in BLOCKS if kind == "python"]
    assert len(blocks) == 2
    for block in blocks:
        ast.parse(block)


@pytest.mark.parametrize("page", ["map.md", "serving.md", "sharing.md"])
def test_other_pages_lead_there(page):
    assert "](publish-elsewhere.md)" in (ROOT / "docs" / page).read_text()
