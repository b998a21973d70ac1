"""Half precision: what of a graph bears fp16 or bf16, and a graph that says so."""
