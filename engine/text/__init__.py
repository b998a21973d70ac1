"""Texts that people write and read: places for errors, names that look alike, sizes in bytes, hints to install."""
