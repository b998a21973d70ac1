"""OpenVINO: a runtime for CPUs. Recipes may name it, but nothing builds for it yet."""
