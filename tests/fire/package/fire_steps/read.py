"""Takes a file from outside the store in."""

from pathlib import Path
from typing import ClassVar

from engine.step import Report, Source, Step
from fire_steps.telling import announced


class Read(Step):
    """Takes a file from outside the store in."""

    makes: ClassVar[str] = "taken"
    source: Source

    def run(self, out: Path, *, source: Path) -> Report:
        with announced("read", "", {"source": source}, seconds=0.03) as identity:
            # The file is read a second time, a little later: a change meanwhile gets its chance.
            (out / "text.txt").write_bytes(source.read_bytes())
        return {"identity": identity}
