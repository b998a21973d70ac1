"""PyTorch: runs the original model as a rival in `bench`. No recipe builds for it."""
