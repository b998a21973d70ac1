"""Images: how an image file becomes the input tensors of a model, and which settings say so."""
