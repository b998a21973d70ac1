"""Inputs of models: samples, tokenizer, random tensors, cases."""
