"""The trivial job without a build tool: one process that imports the step and runs it."""

import sys
from pathlib import Path

from trivial_step import Trivial


def main(number: int) -> None:
    """Run the job `number`; its output goes to the folder `out`."""
    Trivial(number=number).run(Path("out"), text=Path("in") / f"{number}.txt")


if __name__ == "__main__":
    main(int(sys.argv[1]))
