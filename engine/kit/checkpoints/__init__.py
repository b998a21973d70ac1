"""What a model directory, a hub or a package says of itself."""
