"""What the operating system gives and refuses: standard streams, regular files and limits."""
