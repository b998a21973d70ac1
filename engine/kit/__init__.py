"""What steps share, in rooms by what it is about."""
