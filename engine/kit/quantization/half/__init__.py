"""Half precision: which nodes of a graph run in fp16 or bf16, and the graph with its casts."""
