"""The pages of this project and their blocks: what a page shows, and what its marker says of who runs it.

A marker is a comment of HTML on the line before the block:

    <!-- run by tests/documents/test_commands.py -->
    <!-- not run: it needs a GPU -->
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
_MARKER = re.compile(r"<!-- (?:run by (?P<by>tests/\S+\.py)|not run: (?P<reason>.+)) -->")
_MASKED = (
    (re.compile(r"\b[0-9a-f]{8,}(\.{3})?"), "HEX"),
    (re.compile(r"made on .*?, GPU: (none|[^()]+ \(sm_\d+\))"), "made on CPU"),
    (re.compile(r"(?<=with -j )\d+"), "CPUS"),
    (re.compile(r"-?\d+(\.\d+)?( (ms|s|min|h|kB|MB|GB)\b|x\b|%)"), "FIGURE"),
    (re.compile(r"\d+\.\d+(\.\d+)*(e-\d+)?"), "FIGURE"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    marker: re.Match[str] | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def by(self) -> str | None:
        """The test file that runs the block."""
        return self.marker["by"] if self.marker else None

    @property
    def reason(self) -> str | None:
        """Why nothing runs the block."""
        return self.marker["reason"] if self.marker else None

    def transcript(self) -> list[tuple[str, str]]:
        """Return each command behind `$ ` with what the page shows below it."""
        parts = re.split(r"^\$ (.*)\n", self.text, flags=re.MULTILINE)
        assert parts[0] == "", f"{self}: a transcript begins with a command"
        return list(zip(parts[1::2], parts[2::2], strict=True))


def pages() -> list[Path]:
    """Return every page, in a fixed order."""
    shown = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
    return [*shown, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "recipes").rglob("*.md"))]


@cache
def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page."""
    text = page.read_text("utf-8")
    lines = text.splitlines()
    shown = []
    for token in MarkdownIt().parse(text):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            before = lines[token.map[0] - 1].strip() if token.map[0] else ""
            marker = _MARKER.fullmatch(before)
            shown.append(Block(page, token.map[0] + 1, token.info.strip(), token.content, marker))
    return shown


def every_block() -> list[Block]:
    """Return the blocks of all pages."""
    return [block for page in pages() for block in blocks(page)]


def run_by(file: str, *pages_of: str) -> list[Block]:
    """Return the blocks whose marker names a test file: of all pages, or of those with the given paths."""
    name = str(Path(file).relative_to(ROOT))
    chosen = [ROOT / page for page in pages_of] or pages()
    return [block for page in chosen for block in blocks(page) if block.by == name]


def masked(line: str) -> str:
    """Return a line of output without what differs from machine to machine: figures, digests, the machine."""
    for pattern, replacement in _MASKED:
        line = pattern.sub(replacement, line)
    return line.strip()


def difference(shown: str, printed: str) -> str:
    """Say which line of a page was not printed, in its order; "" where all were.

    `...` on a line of its own stands for any lines, and within a line for any text.
    """
    printed_lines = [masked(line) for line in printed.splitlines() if line.strip()]
    at, gap = 0, False
    for line in (masked(line) for line in shown.splitlines() if line.strip()):
        if line == "...":
            gap = True
            continue
        pattern = re.compile(re.escape(line).replace(re.escape("..."), ".*"))
        places = [n for n in range(at, len(printed_lines)) if pattern.fullmatch(printed_lines[n])]
        if not places or (places[0] != at and not gap):
            return f"the page shows {line!r}; printed from there:\n" + "\n".join(printed_lines[at:])
        at, gap = places[0] + 1, False
    return "" if gap or at == len(printed_lines) else "printed, and not shown:\n" + "\n".join(printed_lines[at:])
