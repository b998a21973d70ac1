"""Texts that people write and read: places for errors, alike names, sizes in bytes, hints; and options in JSON."""
