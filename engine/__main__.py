"""`python -m engine` is the same program as `recipe`."""

from engine.cli import main

main()
