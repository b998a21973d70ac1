"""Dynamic int8: weights are quantized ahead of time, activations at each run."""
