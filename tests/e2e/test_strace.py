"""A build under strace, which sees every file that any code opens, also native code: all are rows, or allowed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import graphs
import onnx
import pytest

import engine
from engine.builder.trace import call_sites, packages
from engine.builder.trace.coverage import Rows, examine
from engine.builder.trace.reads import Kind, Read

ENGINE = str(Path(engine.__file__).parent) + os.sep
OPENED = re.compile(r"open(?:at|at2)?\(.*\bO_(?:RDONLY|RDWR)\b.* = \d+<(/[^>]*)>")
STARTED = re.compile(r'execve\("([^"]+)".* = 0$')
CONNECTED = re.compile(r'connect\(.*sin6?_port=htons\((\d+)\).*inet_(?:addr\("|pton\(AF_INET6, ")([^"]+)"')
OWN = {"build", "cache", "net.onnx", "pyproject.toml", "r.yaml", "tmp"}
"""What lies in the project: its recipe, its source, and what the build itself writes, the user's notes included."""


def reason_against_strace():
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"strace cannot trace here: {done.stderr.strip()}"


@pytest.mark.slow
@pytest.mark.whole
def test_whatever_a_build_opens_is_a_row_or_on_the_allow_list(tmp_path):
    if reason := reason_against_strace():
        pytest.skip(reason)
    project, log = tmp_path / "project", tmp_path / "strace.txt"
    (project / "tmp").mkdir(parents=True)
    (project / "pyproject.toml").write_text("")
    (project / "r.yaml").write_text(graphs.INT8_RECIPE)
    onnx.save(graphs.layers(), project / "net.onnx")
    command = ["strace", "-f", "-y", "-qq", "-e", "trace=%file,connect", "-e", "signal=none", "-o", str(log)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECIPE_")}
    subprocess.run(
        [*command, sys.executable, "-m", "engine", "build", "r.yaml", "-j", "1"],
        cwd=project, env=environment | {"CI": "1", **dict.fromkeys(("TMPDIR", "XDG_CACHE_HOME"), str(project / "tmp"))},
        check=True, capture_output=True,
    )  # fmt: skip
    items = [read for line in log.read_text(errors="replace").splitlines() if (read := read_of(line)) is not None]
    inside = {Path(each.name).relative_to(project).parts[:1] for each in items if each.name.startswith(f"{project}/")}
    assert {name for parts in inside for name in parts} <= OWN
    opened = [each for each in items if not each.name.startswith(str(project))]
    assert len(opened) > 50  # the log was understood
    records = [json.loads(path.read_bytes()) for path in (project / "cache" / "records").glob("*.json")]
    tools = {row.removeprefix("tools.") for record in records for row in record["key"] if row.startswith("tools.")}
    assert "onnxruntime" in tools
    code = tuple(each.name for each in opened if each.name.startswith(ENGINE))  # the builder reads all of it
    trace = examine(opened, Rows("engine", root=ENGINE, code=code, tools=tuple(sorted(tools))))
    assert [f"{gap.kind} {gap.name}" for gap in trace.gaps] == []
    assert any("libc" in name for group in trace.groups for name in group.names)  # native code was seen


def read_of(line):
    """Return what a line of strace's log opened, started or connected to; None for other lines."""
    if match := OPENED.search(line):
        path = re.sub(r"^/proc/\d+", "/proc/self", match[1])
        kind = Kind.FOLDER if "O_DIRECTORY" in line else Kind.FILE
        package = None if path.startswith(ENGINE) else packages.package_of(call_sites.source_of(path))
        return Read(kind, path) if package is None else Read(Kind.PACKAGE, package)
    if match := STARTED.search(line):
        package = packages.package_of(os.path.realpath(match[1]))
        return Read(Kind.PROGRAM, match[1]) if package is None else Read(Kind.PACKAGE, package)
    if match := CONNECTED.search(line):
        return Read(Kind.NETWORK, f"{match[2]}:{match[1]}")
    return None
