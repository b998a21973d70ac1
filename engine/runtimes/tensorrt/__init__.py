"""TensorRT: engines, their passports, and what runs them."""
