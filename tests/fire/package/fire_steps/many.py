"""Makes several files, in folders, equal ones among them, and hands its input on."""

import os
from pathlib import Path
from typing import ClassVar

from engine.step import Report, Step
from fire_steps.telling import announced


class Many(Step):
    """Makes several files, in folders, equal ones among them, and hands its input on."""

    makes: ClassVar[str] = "several"

    def run(self, out: Path, *, seeded: Path) -> Report:
        with announced("many", "", {"seeded": seeded}, seconds=0.002) as identity:
            for number in range(6):
                folder = out / f"part{number % 3}"
                folder.mkdir(exist_ok=True)
                (folder / f"{number}.txt").write_text(f"{number // 2} of them\n")
            (out / "empty").write_bytes(b"")
            os.link(seeded / "text.txt", out / "handed_on.txt")
        return {"identity": identity}
