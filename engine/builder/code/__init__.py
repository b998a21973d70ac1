"""Digests of the source code of steps: a fix changes the digest; a comment or the move of a module does not."""
