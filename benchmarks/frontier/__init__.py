"""The parts of `cpu_frontier.py`: models, contenders and how they are built, opened, compared, timed and judged."""
