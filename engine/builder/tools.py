"""The rows of a key for tools: versions, and digests of the code of tools whose versions do not tell the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from engine.known import Known
from engine.machine import tools
from engine.runtimes import versions
from engine.store import user_cache
from engine.store.tool_contents import ToolContent, content_of


class Tools:
    """The installed tools, as the keys of one build see them: each tool is looked up once."""

    def __init__(self, *, afresh: bool = False) -> None:
        """If `afresh` is true, the code of each tool is read once, whatever earlier builds remembered."""
        self._notes = user_cache.notes()
        self._afresh = afresh
        self._known: dict[str, Known] = {}
        self._installed: dict[str, ToolContent] = {}

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why the code of tools may differ from what their versions promise, by the name of the tool."""
        return {name: content.reason for name, content in self._installed.items() if content.reason}

    def known(self, name: str) -> Known:
        """Return the value of a tool's row, with the files that the value depends on."""
        if name not in self._known:
            version = tools.known(name)
            content = self._content(name)
            self._installed[name] = content
            value = versions.with_content(version.value, content.other)
            self._known[name] = Known(value, (*version.paths, *content.watched))
        return self._known[name]

    def changed(self, names: Iterable[str]) -> Path | None:
        """Return a file of one of the tools that changed after the tool was looked up; None if no file changed."""
        contents = (self._installed[name] for name in names if name in self._installed)
        return next(filter(None, (content.changed_file() for content in contents)), None)

    def _content(self, name: str) -> ToolContent:
        provider = tools.provider(name)
        return ToolContent() if provider is None else content_of(provider, self._notes, afresh=self._afresh)
