"""Rows of keys that this process computes: from the code of steps, and from what this machine has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.builder.job import Job
from engine.digest import Digest
from engine.errors import StepError
from engine.facts import Known
from engine.key import Key, key_of
from engine.machine import tools
from engine.store import user_cache
from engine.store.record import Record
from engine.store.stat_cache import Row, row_of
from engine.store.store import Store
from engine.store.tool_contents import ToolContent, content_of
from engine.text import redaction, versions

if TYPE_CHECKING:
    from types import ModuleType

    from engine.builder.code.closure import Code
    from engine.step import Hardware, Step


class MachineRows(NamedTuple):
    """The values of a machine that become rows of a job's key."""

    tools: Mapping[str, str]
    facts: Mapping[str, str]
    variables: Mapping[str, str]


class LiveRows:
    """The rows of keys as this process computes them. Each version of a tool is looked up only once."""

    def __init__(self, store: Store, *, machine: Mapping[str, str] | None = None) -> None:
        """`machine` are the facts that describe this machine in records, if the caller knows them."""
        self._notes = user_cache.notes()
        self._afresh = store.contents.afresh
        self._tools: dict[str, Known] = {}
        self._installed: dict[str, ToolContent] = {}
        self._machine = machine
        self._seen: dict[Known, None] = {}
        self.required_tools: Mapping[str, str] = {}

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why the code of tools may differ from what their versions promise, by the name of the tool."""
        return {name: content.reason for name, content in self._installed.items() if content.reason}

    def keys(self, job: Job, inputs: Mapping[str, str], *, waits_for: Hardware | None) -> Iterable[Key]:
        """Return no key: there is no lock."""
        del job, inputs, waits_for
        return ()

    def accept(self, job: Job, record: Record, *, waits_for: Hardware | None) -> None:
        """Accept every record: there is no lock."""

    def own(self, job: Job, *, waits_for: Hardware | None, on: MachineRows | None) -> Key:
        """Return the rows of a job's key for code, options, tools, facts and environment variables.

        For a job whose hardware this machine lacks, these are no facts, no variables and no tool of the hardware.
        Raises StepError for a fact that no module declares.
        """
        step = job.step
        if on is not None:
            return key_of(options=step.options(), code=self.code(step), inputs={}, **on._asdict())
        from engine.builder import facts

        hardware = step.hardware()
        for known in () if hardware is None else facts.needed_by(hardware):
            self.note(known)
        try:
            values = self.facts(step.facts_used(), hardware) if waits_for is None else {}
        except KeyError as unknown:
            raise StepError(
                f"the step {job.name!r} depends on a fact that no module declares: {unknown}",
                [f"facts: {', '.join(facts.describing())}"],
            ) from None
        return key_of(
            options=step.options(),
            code=self.code(step),
            inputs={},
            tools=self.tools(tool for tool in step.tools_used() if waits_for is None or tool not in waits_for.tools),
            facts=values,
            variables=self.variables(step.variables if waits_for is None else ()),
        )

    def note(self, known: Known) -> str:
        """Return the value of a fact, and remember which files and environment variables the value depends on."""
        self._seen[known] = None
        return known.value

    def facts(self, names: Iterable[str], hardware: Hardware | None) -> dict[str, str]:
        """Return the values of facts by the names of the facts.

        Raises KeyError for an undeclared fact, and for a GPU that this machine lacks.
        """
        from engine.builder import facts

        return {name: self.note(facts.of(name, hardware)) for name in names}

    def tools(self, names: Iterable[str]) -> dict[str, str]:
        """Return the installed version of each distribution, or `tools.MISSING`, by the distribution's name.

        If the code of a distribution may differ from what its version promises, the value also has a digest of the
        code.
        """
        return {name: self.note(self._tool(name)) for name in names}

    def _tool(self, name: str) -> Known:
        if name not in self._tools:
            version, provider = tools.known(name), tools.provider(name)
            content = ToolContent()
            if provider is not None:
                content = content_of(provider, self._notes, afresh=self._afresh)
            self._installed[name] = content
            value = versions.with_content(version.value, content.other)
            self._tools[name] = Known(value, (*version.paths, *content.watched))
        return self._tools[name]

    def variables(self, names: Iterable[str]) -> dict[str, str]:
        """Return the values of environment variables by name; a variable that is not set is left out.

        A value that is a secret is a digest here: records, locks and texts have these values.
        """
        seen = {name: self.note(Known(os.environ.get(name, ""), variables=(name,))) for name in names}
        shown = {name: redaction.digest(value) if redaction.is_secret(name) else value for name, value in seen.items()}
        return {name: value for name, value in shown.items() if name in os.environ}

    def code(self, step: Step) -> Digest:
        """Return the digest of the code that a step with its options runs."""
        step_code = self._code_of(step)
        self.note(Known(step_code.digest, tuple(map(str, step_code.watched))))
        return step_code.digest

    def code_read(self, job: Job) -> Iterable[tuple[Path, Row]]:
        """Yield the files of a job's code with the stat rows that the files had when they were read."""
        return ((path, row_of(before)) for path, before in self._code_of(job.step).before.items())

    def changed_tool(self, job: Job) -> Path | None:
        """Return a file of a job's tools that changed after the tools were looked up; None if no file changed."""
        contents = (self._installed[name] for name in job.traits.tools if name in self._installed)
        return next(filter(None, (content.changed_file() for content in contents)), None)

    def is_judged(self, job: Job, record: Record) -> bool:
        """Say that no record is judged yet."""
        del job, record
        return False

    def watched(self) -> Known:
        """Return all files, folders and environment variables that the rows depend on."""
        paths = (path for known in self._seen for path in known.paths)
        variables = (name for known in self._seen for name in known.variables)
        return Known("", tuple(dict.fromkeys(paths)), tuple(dict.fromkeys(variables)))

    @cached_property
    def machine(self) -> Mapping[str, str]:
        """The facts about this machine that are written into each record that this machine makes."""
        if self._machine is not None:
            return self._machine
        from engine.builder import facts

        return facts.describing()

    def _code_of(self, step: Step) -> Code:
        code: Code = self._closure.of_step(step)
        return code

    @cached_property
    def _closure(self) -> ModuleType:
        """The module that computes the code of steps, which has forgotten modules that changed before this build."""
        from engine.builder.code import closure

        closure.forget_changed()
        return closure
