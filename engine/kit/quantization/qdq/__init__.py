"""Quantization for GPUs: QuantizeLinear and DequantizeLinear in front of the MatMuls that tolerate few bits."""
