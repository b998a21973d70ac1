"""The original model, loaded and run in one way, whatever library runs it."""
