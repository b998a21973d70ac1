"""The lock beside a recipe: what its builds are made of, for reviewing in git and for checking before a build."""
