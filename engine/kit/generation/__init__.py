"""Generating text: the graphs with their past, the greedy loop, what a checkpoint says about it."""
