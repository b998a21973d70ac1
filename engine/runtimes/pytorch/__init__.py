"""PyTorch: runs the original model as a rival in `bench`. Recipes cannot have PyTorch as their target."""
