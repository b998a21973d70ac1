"""TensorRT: builds engines, writes their passports, and runs them."""
