"""Inputs of models: samples, tokenizers, random tensors and stored cases."""
