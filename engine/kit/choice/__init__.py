"""Choice: which of several built models of one recipe is kept, by their measured accuracy and latency."""
