"""The file of what was measured on a GPU: a line of JSON for each part, written as soon as the part has ended."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


class WrongMachineError(Exception):
    """The file has rows of another machine or of other versions."""


class Rows:
    """The rows of the parts that have run, by the name of the part; a part that failed has a row with `why`."""

    def __init__(self, file: Path, machine: Row) -> None:
        """Read the rows of earlier runs, or begin a file with what describes the machine.

        A last line that a crash has cut off is dropped. Raises WrongMachineError for rows of another machine.
        """
        self.file = file
        self.by_part: dict[str, Row] = {}
        lines = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
        whole = [line for line in lines if line.endswith("\n")]
        if len(whole) < len(lines):
            file.write_text("".join(whole), "utf-8")
        before, *rows = [json.loads(line) for line in whole] or [None]
        if before is None:
            self._write(machine)
        elif before != machine:
            raise WrongMachineError(f"{file} has rows of {before}, and this is {machine}")
        self.by_part = {row["part"]: row for row in rows}

    def has(self, part: str) -> bool:
        """Tell whether a part has been measured; a part that failed has not."""
        return part in self.by_part and "why" not in self.by_part[part]

    def add(self, part: str, row: Row) -> None:
        """Write the row of a part to the disk."""
        self.by_part[part] = {"part": part, **row}
        self._write(self.by_part[part])

    def _write(self, row: Row) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
