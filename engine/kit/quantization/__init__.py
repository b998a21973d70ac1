"""Lower precisions: dynamic int8 for CPUs; Q/DQ and half precision for GPUs."""
