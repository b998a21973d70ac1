"""Text generation: torch modules with a past, the loop of greedy generation, and its settings in a checkpoint."""
