"""Weight-only quantization for CPUs: stored weights in 4 or 8 bits, with a scale for each block of weights."""
