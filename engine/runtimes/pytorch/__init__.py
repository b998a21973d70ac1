"""PyTorch: the original model, as one would serve it without a recipe."""
