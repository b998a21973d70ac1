"""Drafts: the first recipe of a model, written from the model's own files or from another tool's configuration."""
