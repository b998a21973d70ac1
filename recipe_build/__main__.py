"""The command `python -m recipe_build`, which is the same program as `recipe`."""

from recipe_build import main

main()
