"""Plan, keys, look-up, loop and workers: from a recipe to its artifacts."""
