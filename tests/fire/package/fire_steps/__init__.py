"""Steps of another package."""
