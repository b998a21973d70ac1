"""What becomes a Triton model repository: configurations, the code that is served, the folders."""
