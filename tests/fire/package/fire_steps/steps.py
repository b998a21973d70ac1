"""Eight small steps, brought by another package: what builds under fire are made of."""

import os
import random
from pathlib import Path
from tempfile import TemporaryFile
from typing import ClassVar

from engine.step import Report, Source, Step
from fire_steps.helper import joined as joined_texts
from fire_steps.telling import announced, tree

_DOC_STRING = b"\x32"
"""Field 6 of a ModelProto, a string (onnx.proto); of a field that stands twice the last one counts."""
_SPILLED = 1000


class Read(Step):
    """Takes a file from outside the store in."""

    makes: ClassVar[str] = "taken"
    source: Source

    def run(self, out: Path, *, source: Path) -> Report:
        with announced("read", "", {"source": source}, seconds=0.03) as identity:
            # The file is read a second time, a little later: a change meanwhile gets its chance.
            (out / "text.txt").write_bytes(source.read_bytes())
        return {"identity": identity}


class Seed(Step):
    """Writes the text that makes the variants differ."""

    makes: ClassVar[str] = "seeded"
    text: str

    def run(self, out: Path) -> Report:
        with announced("seed", self.text, {}, seconds=0.001) as identity:
            (out / "text.txt").write_text(self.text)
        print(f"wrote {self.text}")
        return {"identity": identity}


class Left(Step):
    """The left half of a diamond."""

    makes: ClassVar[str] = "left_half"

    def run(self, out: Path, *, seeded: Path) -> Report:
        with announced("left", "", {"seeded": seeded}, seconds=0.05) as identity:
            (out / "left.txt").write_text("left of " + (seeded / "text.txt").read_text())
        print("the left half")
        return {"identity": identity}


class Right(Step):
    """The right half of a diamond."""

    makes: ClassVar[str] = "right_half"

    def run(self, out: Path, *, seeded: Path) -> Report:
        with announced("right", "", {"seeded": seeded}, seconds=0.02) as identity:
            (out / "right.txt").write_text("right of " + (seeded / "text.txt").read_text())
        print("the right half")
        return {"identity": identity}


class Join(Step):
    """Joins both halves with what was taken in, through words of its own that lie beside it."""

    makes: ClassVar[str] = "joined"

    def run(self, out: Path, *, left_half: Path, right_half: Path, taken: Path) -> Report:
        inputs = {"left": left_half, "right": right_half, "taken": taken}
        with announced("join", "", inputs, seconds=0.005) as identity:
            texts = [path.read_text() for folder in inputs.values() for path in sorted(folder.iterdir())]
            (out / "joined.txt").write_text(joined_texts(texts))
        return {"identity": identity}


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


class Stamp(Step):
    """Writes what all others made into the model, right before it is packaged."""

    makes: ClassVar[str] = "stamped"
    after: ClassVar[str] = "validate"

    def run(self, out: Path, *, model: Path, joined: Path, several: Path, large: Path) -> Report:
        inputs = {"model": model, "joined": joined, "several": several, "large": large}
        with announced("stamp", "", inputs, seconds=0.01) as identity:
            text = "".join(tree(path)[:16] for path in inputs.values()).encode()
            field = _DOC_STRING + bytes([len(text)]) + text
            with TemporaryFile() as scratch:  # as tools do that sort or spill
                scratch.write(field * _SPILLED)
            (out / "model.onnx").write_bytes((model / "model.onnx").read_bytes() + field)
        print(f"stamped {text.decode()}")
        return {"identity": identity}
