"""Answers: models of a repository that turn a model's outputs into labels, spans or words; a module for each kind."""
