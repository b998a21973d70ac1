"""Answers: python models that turn a model's outputs into labels, spans or words; each module makes one kind."""
