"""Text generation: modules with their past for export, the greedy loop, and the settings of a checkpoint."""
