"""PyTorch: runs the original model as a rival in `bench`. A recipe cannot name PyTorch as `target.runtime`."""
