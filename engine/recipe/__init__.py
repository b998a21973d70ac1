"""Recipes: YAML text becomes frozen values, and each error has a place in the text."""
