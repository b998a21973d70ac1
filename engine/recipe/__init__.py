"""A recipe: YAML text -> frozen values, with places for errors."""
