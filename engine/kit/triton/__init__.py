"""Triton model repositories: configurations, the code that runs in the server, and the folders of models."""
