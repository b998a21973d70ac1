"""Model sources: checkpoint directories, the hub and installed Python packages."""
