"""Makes a file of 5 MB."""

import random
from pathlib import Path
from typing import ClassVar

from engine.step import Report, Step
from fire_steps.telling import announced


class Big(Step):
    """Makes a file of 5 MB."""

    makes: ClassVar[str] = "large"
    megabytes: int = 5

    def run(self, out: Path, *, taken: Path) -> Report:
        with announced("big", str(self.megabytes), {"taken": taken}, seconds=0.0) as identity:
            chance = random.Random((taken / "text.txt").read_bytes())
            with open(out / "large.bin", "wb") as file:
                file.writelines(chance.randbytes(1_000_000) for _ in range(self.megabytes))
        print("made it")
        return {"identity": identity}
