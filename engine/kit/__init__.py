"""What several steps share, a file per tool."""
