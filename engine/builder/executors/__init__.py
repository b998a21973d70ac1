"""Executors: they run jobs in worker processes."""
