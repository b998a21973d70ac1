"""What executes models: a package per runtime."""
