"""Clusters: the jobs of one build on many machines, which share nothing but a remote."""
