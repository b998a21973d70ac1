"""The same work without a build tool: one process that reads and writes each file in turn."""

import os
import sys


def main(count: int) -> None:
    """Do the work of `count` jobs in an empty folder `out`."""
    for number in range(count):
        os.mkdir(f"out/{number}")
        with open(f"in/{number}.txt", "rb") as text, open(f"out/{number}/{number}.txt", "wb") as copy:
            copy.write(text.read())


if __name__ == "__main__":
    main(int(sys.argv[1]))
