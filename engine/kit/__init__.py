"""Code that several steps share: a package for each subject, such as ONNX files or inputs."""
