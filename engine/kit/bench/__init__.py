"""Measuring time: interleaving, contenders, statistics."""
