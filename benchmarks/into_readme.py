"""Runs a benchmark and puts its output into README.md: `python benchmarks/into_readme.py no_op.py --runs 40`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
END = "<!-- end -->"


def main(script: str, words: list[str]) -> None:
    """Run a script and replace the text between its two marks in README.md.

    `script` may have options, such as "cpu_frontier.py --model nudenet": its mark then has them, too.
    """
    file, *own = script.split()
    command = [sys.executable, str(HERE / file), *own, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    put(HERE / "README.md", script, done.stdout)


def put(readme: Path, script: str, printed: str) -> None:
    """Put a script's output behind its mark. Raises ValueError if the file has no mark for the script."""
    text = readme.read_text()
    begin = f"<!-- measured: {script} -->"
    start = text.index(begin) + len(begin)
    end = text.index(END, start)
    readme.write_text(f"{text[:start]}\n{printed.strip()}\n{text[end:]}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
