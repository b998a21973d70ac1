"""Make the pictures of README: `python docs/pictures/make.py recipes/minilm_cpu.yaml`.

It needs the extras `dev-terminal` and `dev-browser`, and Chromium from the system's packages. `build.svg` is the screen
of a real build with an empty store, with its colours; `report.png` is the top of its page.
Further words go to `recipe build`: with `--to validate` nothing is measured.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyte
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import terminal  # noqa: E402 - of the tests: the command line in a pseudo-terminal

COLUMNS, ROWS = 80, 60
WIDTH, HEIGHT = 820, 930
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""What Rich lets a browser fetch from another server: the picture uses the fonts that are there."""


def main(recipe: str, *more: str) -> None:
    """Build a recipe in a copy of the shipped ones, and write both pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "recipes", folder / "recipes")
        (folder / "pyproject.toml").touch()
        words = ["build", recipe, *more]
        recording = terminal.record(words, folder, columns=COLUMNS, rows=ROWS)
        if recording.code != 0:
            raise SystemExit("\n".join(recording.last))
        (HERE / "build.svg").write_text(svg(f"recipe {' '.join(words)}", recording.raw), "utf-8")
        subprocess.run([sys.executable, "-m", "engine", "report", recipe, "-o", "page.html"], cwd=folder, check=True)
        screenshot(folder / "page.html", HERE / "report.png")


def svg(command: str, raw: bytes) -> str:
    """Return the screen at the end of a command as a picture."""
    lines = [Text.assemble(*parts) for parts in _last_screen(raw)]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {command}", style="bold"))
    console.print(*lines, sep="\n")
    picture = _FONTS.sub("", console.export_svg(title="recipe", theme=MONOKAI, unique_id="recipe"))
    return re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE).strip() + "\n"


def screenshot(page: Path, out: Path) -> None:
    """Write the top of a page as Chromium shows it."""
    with sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        window.goto(page.as_uri())
        window.screenshot(path=out)
        browser.close()


def _last_screen(raw: bytes) -> list[list[tuple[str, str]]]:
    """Return the lines of the screen at the end, each as texts with their styles."""
    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.ByteStream(screen).feed(raw)
    lines = []
    for row in range(ROWS):
        cells = [screen.buffer[row][column] for column in range(COLUMNS)]
        lines.append([(cell.data, _style(cell)) for cell in cells])
    while lines and not "".join(text for text, _ in lines[-1]).strip():
        lines.pop()
    return lines


def _style(cell: pyte.screens.Char) -> str:
    colour = "" if cell.fg == "default" else cell.fg.replace("brown", "yellow").replace("bright", "bright_")
    colour = f"#{colour}" if re.fullmatch(r"[0-9a-f]{6}", colour) else colour
    return f"{'bold ' if cell.bold else ''}{colour}".strip()


if __name__ == "__main__":
    main(*sys.argv[1:])
