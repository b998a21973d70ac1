"""Bench: measures the latencies of models in turns, with statistics and a report."""
