"""Build a recipe's artifacts: plan, keys, look-up, loop and workers."""
