"""Inductor: models that PyTorch's AOTInductor compiles ahead of time into native code, for a CPU or a GPU."""
