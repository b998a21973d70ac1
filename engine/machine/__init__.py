"""This machine: its CPU, its GPUs and its installed tools."""
