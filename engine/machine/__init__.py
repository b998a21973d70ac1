"""The machine that runs the build: CPU, GPUs and installed tools."""
