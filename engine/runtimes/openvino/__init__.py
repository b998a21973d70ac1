"""OpenVINO: a runtime for CPUs. Recipes may name `openvino`, but no step builds for OpenVINO yet."""
