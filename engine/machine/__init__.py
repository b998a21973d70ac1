"""What this machine is: its CPU, its GPUs, its tools."""
