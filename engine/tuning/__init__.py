"""Tuning: searches whose trials are ordinary, cached builds of a recipe with some fields changed."""
