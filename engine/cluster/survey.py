"""Surveys: what a node has that decides where jobs run and what their keys are."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.errors import UserError
from engine.text import distribution

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.builder.live_rows import LiveRows
    from engine.step import Hardware

NO_HARDWARE = ""
"""The name under which the facts of jobs that need no hardware are asked for."""


@dataclass(frozen=True)
class Question:
    """What a build asks every node: the values that may become rows of the keys of its jobs.

    `hardware` has the fields of each `Hardware` that a job needs, by its name. `facts` are the names of the facts that
    jobs with that hardware use.
    """

    tools: tuple[str, ...]
    variables: tuple[str, ...]
    hardware: Mapping[str, Mapping[str, Any]]
    facts: Mapping[str, tuple[str, ...]]

    @classmethod
    def about(cls, jobs: Iterable[Job]) -> Question:
        """Return the question that is to be asked for a build of these jobs."""
        tools: dict[str, None] = {}
        variables: dict[str, None] = {}
        hardware: dict[str, Mapping[str, Any]] = {}
        facts: dict[str, dict[str, None]] = {NO_HARDWARE: {}}
        for step in {id(job.step): job.step for job in jobs}.values():
            needed = step.hardware()
            name = NO_HARDWARE if needed is None else str(needed)
            if needed is not None:
                libraries = needed.libraries and needed.libraries._asdict()
                hardware[name] = {**needed.model_dump(mode="json"), "libraries": libraries}
            tools |= dict.fromkeys(step.tools_used())
            variables |= dict.fromkeys(step.variables)
            facts.setdefault(name, {}).update(dict.fromkeys(step.facts_used()))
        named = {name: tuple(sorted(every)) for name, every in facts.items()}
        return cls(tuple(sorted(tools)), tuple(sorted(variables)), dict(sorted(hardware.items())), named)


@dataclass(frozen=True)
class Survey:
    """The answers of a node. Nodes with equal surveys are of one kind: a job has the same key on each of them.

    `version` is that of this program, with the version of Python. `lacks` says for each `Hardware` what the node lacks,
    or "" if jobs with that hardware can run there. `remote` is the remote that the node uses, and `trouble` why no job
    can run on the node: for example, that it may not push.
    """

    version: str
    remote: str
    trouble: str
    machine: Mapping[str, str]
    tools: Mapping[str, str]
    variables: Mapping[str, str]
    lacks: Mapping[str, str]
    facts: Mapping[str, Mapping[str, str]]

    @cached_property
    def kind(self) -> str:
        """A text that all nodes of one kind have in common, and no other node."""
        return repr((self.version, self.tools, self.variables, self.lacks, self.facts))


def version() -> str:
    """Return the version of this program and of Python, in which nodes and builder have to agree."""
    return f"{distribution.running()} on Python {platform.python_version()}"


def take(question: Question, live: LiveRows, *, remote: str, trouble: str) -> Survey:
    """Return the survey of this machine."""
    from engine.builder import facts
    from engine.runtimes import requirements
    from engine.step import Hardware

    every: dict[str, Hardware | None] = {
        NO_HARDWARE: None,
        **{name: Hardware.model_validate(fields) for name, fields in question.hardware.items()},
    }
    lacks = {name: requirements.lack(each) for name, each in every.items() if each is not None}
    known: dict[str, Mapping[str, str]] = {}
    for name, hardware in every.items():
        if lacks.get(name) is None:
            try:
                known[name] = live.facts(question.facts.get(name, ()), hardware)
            except KeyError as error:
                trouble = trouble or f"no module declares the fact {error}"
    return Survey(
        version=version(),
        remote=remote,
        trouble=trouble,
        machine=dict(facts.describing()),
        tools=live.tools(question.tools),
        variables={name: os.environ[name] for name in question.variables if name in os.environ},
        lacks={name: "" if lack is None else lack.here or "no such GPU" for name, lack in lacks.items()},
        facts=known,
    )


def unusable(trouble: UserError | str) -> Survey:
    """Return the survey of a node on which no job can run."""
    return Survey("", "", str(trouble), {}, {}, {}, {}, {})


def read(answer: Mapping[str, Any] | str) -> Survey:
    """Return the survey that a node has answered, or one that says why there is none.

    Of a survey with other fields, which another version of this program has answered, only the version is read.
    """
    if isinstance(answer, str):
        return unusable(answer)
    try:
        return Survey(**answer)
    except TypeError as wrong:
        there = str(answer.get("version", ""))
        return replace(unusable(f"the node's survey cannot be read: {wrong}"), version=there)
