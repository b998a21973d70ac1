"""The steps that ship: one kind of work a file."""
