"""The original model as one thing to ask."""
