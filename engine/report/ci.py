"""What a CI shows of a build: GitHub's lines beside a change and summary of a job, GitLab's report of jobs as tests."""

# Sources of the forms: GitHub, "Workflow commands for GitHub Actions"; GitLab, "Unit test reports": testsuite, testcase
# with name, classname, time and file, failure and skipped.

from __future__ import annotations

import contextlib
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from engine.errors import UserError
from engine.events import Ended, Event, Refused
from engine.store import disk
from engine.system import regular
from engine.text import redaction

JUNIT_FILE = "recipe-junit.xml"
"""The name of the report in the folder of the project that GitLab has checked out."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PASSED = ("cached", "built", "reproduced")


def github_commands(error: UserError, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the workflow commands that show an error, one for each wrong recipe; empty outside of GitHub Actions."""
    if environment.get("GITHUB_ACTIONS") != "true":
        return []
    inner = getattr(error, "errors", ())
    return [_github_command(each, environment) for each in inner or (error,)]


def summarize_for_github(title: str, tables: str, environment: Mapping[str, str] = os.environ) -> None:
    """Add tables of plain text to the summary of a job of GitHub Actions, where there is one; ignore errors."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if not path or environment.get("GITHUB_ACTIONS") != "true":
        return
    fence = "`" * 3
    block = f"{fence}text\n{tables.rstrip()}\n{fence}\n\n" if tables.strip() else ""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(redaction.redacted(f"### {title}\n\n{block}"))


def _github_command(error: UserError, environment: Mapping[str, str]) -> str:
    position = getattr(error, "position", None)
    if position is None:
        place = ""
    else:
        name = os.path.abspath(position.file)
        root = environment.get("GITHUB_WORKSPACE")
        if root and name.startswith(os.path.join(root, "")):
            name = os.path.relpath(name, root)
        file = _data(name).replace(":", "%3A").replace(",", "%2C")
        place = f" file={file},line={position.line},col={position.column}"
    text = "\n".join([error.what, *error.facts, *([f"hint: {error.hint}"] if error.hint else [])])
    return f"::error{place}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def write_junit(events: Sequence[Event], files: Mapping[str, str]) -> None:
    """In GitLab's CI, add a suite for each recipe to the report. `files` are the recipes' paths by name."""
    suites: dict[str, list[ET.Element]] = {}
    for event in events:
        match event:
            case Ended():
                suites.setdefault(event.recipe, []).append(_case(event, files.get(event.recipe, "")))
            case Refused():
                suites.setdefault(event.path, []).append(_refused(event.error, event.path))
    _add(suites)


def write_junit_error(error: UserError) -> None:
    """Add an error that came before any job to the report: a case for each wrong recipe."""
    errors = getattr(error, "errors", ()) or (error,)
    suites: dict[str, list[ET.Element]] = {}
    for each in errors:
        position = getattr(each, "position", None)
        file = "" if position is None else position.file
        suites.setdefault(file or "recipe", []).append(_refused(each, file))
    _add(suites)


def _case(event: Ended, file: str) -> ET.Element:
    case = _new_case(event.job, event.recipe, event.seconds, file)
    if event.error is not None:
        _failure(case, event.error)
    elif event.state not in _PASSED:
        remark = "; ".join(filter(None, [event.waits_for and f"waits for {event.waits_for}", event.advice]))
        ET.SubElement(case, "skipped", message=_clean(remark or event.state))
    return case


def _refused(error: UserError, file: str) -> ET.Element:
    case = _new_case("check", file or "recipe", 0.0, file)
    _failure(case, error)
    return case


def _new_case(name: str, recipe: str, seconds: float, file: str) -> ET.Element:
    case = ET.Element("testcase", name=name, classname=recipe, time=f"{seconds:.3f}")
    if file:
        case.set("file", file)
    return case


def _failure(case: ET.Element, error: UserError) -> None:
    ET.SubElement(case, "failure", message=_clean(error.what)).text = _clean(str(error))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _add(suites: Mapping[str, Iterable[ET.Element]]) -> None:
    """Write suites into the report; a suite of the same name, of an earlier command, is replaced."""
    if os.environ.get("GITLAB_CI") != "true" or not suites:
        return
    path = Path(os.environ.get("CI_PROJECT_DIR") or ".", JUNIT_FILE)
    with contextlib.suppress(OSError):
        root = _read(path)
        for suite in [each for each in root if each.get("name") in suites]:
            root.remove(suite)
        for name, cases in suites.items():
            root.append(_suite(name, list(cases)))
        ET.indent(root)
        data = redaction.redacted_bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))
        disk.replace(path, data, fresh=path.with_name(f".{path.name}.{os.getpid()}"))


def _suite(name: str, cases: Sequence[ET.Element]) -> ET.Element:
    counts = {kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "skipped")}
    seconds = sum(float(case.get("time", "0")) for case in cases)
    suite = ET.Element("testsuite", name=_clean(name), tests=str(len(cases)), failures=str(counts["failure"]),
                       skipped=str(counts["skipped"]), time=f"{seconds:.3f}")  # fmt: skip
    suite.extend(cases)
    return suite


def _read(path: Path) -> ET.Element:
    """Return the report that earlier commands of the same CI job have written; an empty one where there is none."""
    try:
        if path.is_file():
            return ET.fromstring(regular.read(path))  # noqa: S314  the file is this program's own
    except ET.ParseError:
        pass
    return ET.Element("testsuites", name="recipe")
