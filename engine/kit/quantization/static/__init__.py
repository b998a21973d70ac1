"""Static int8 for CPUs: convolutions and products between Q/DQ pairs, whose ranges were measured on samples."""
