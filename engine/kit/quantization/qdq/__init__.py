"""Quantization for GPUs: Q/DQ around the MatMuls that bear few bits."""
