"""Text generation: torch modules with a past, the loop of greedy generation, and a checkpoint's settings for it."""
