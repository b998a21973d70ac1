"""What the site needs beside docs/: files elsewhere in the repository that pages link to, as MkDocs calls its hooks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(?=[)#])")
_PLACE = "repository"
"""The folder of the site for what lies outside docs/, apart from the README: this is the home of the site."""


class _Indents(Extension):
    """Lists in lists are indented by two blanks, as on GitHub."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name is Markdown's
        md.tab_length = 2


def on_config(config: Any) -> Any:
    config.markdown_extensions.append(_Indents())
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add each file outside docs/ to which a page leads, and the files to which these lead."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    files.append(File.generated(config, _place(pages[0]), abs_src_path=str(pages[0])))
    while pages:
        page = pages.pop()
        for target in (_target(page, link[1]) for link in _LINK.finditer(page.read_text("utf-8"))):
            place = _place(target)
            if target.is_file() and files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, abs_src_path=str(target)))
                pages += [target] if target.suffix == ".md" else []
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let each link lead to the place of its file in the site."""
    path = Path(page.file.abs_src_path)
    depth = "../" * page.file.src_uri.count("/")
    return _LINK.sub(lambda link: depth + _place(_target(path, link[1])), markdown)


def _target(page: Path, link: str) -> Path:
    """Return the file of a link; for a folder its README.md."""
    target = (page.parent / link).resolve()
    return target / "README.md" if target.is_dir() else target


def _place(target: Path) -> str:
    """Return the path of a file in the site."""
    if target.is_relative_to(ROOT / "docs"):
        return target.relative_to(ROOT / "docs").as_posix()
    if target == ROOT / "README.md":
        return "index.md"
    return f"{_PLACE}/{target.relative_to(ROOT).as_posix()}"
