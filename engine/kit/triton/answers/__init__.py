"""Answers: what is made of a model's outputs before a client sees them, a module for each way."""
