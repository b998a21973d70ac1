"""Executors, which run jobs in worker processes."""
