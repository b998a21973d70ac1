"""OpenVINO: recipes may name it, nothing builds for it yet."""
