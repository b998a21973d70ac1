"""The command `python -m engine`, which is the same program as `recipe`."""

from engine.cli import main

main()
