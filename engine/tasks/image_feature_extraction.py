"""Image feature extraction: one vector for each image, such as an embedding for a search by similarity."""

from engine.tasks.task import Modality, Task

TASK = Task(
    name="image-feature-extraction",
    modality=Modality.IMAGE,
    usual_models=("dinov2", "clip", "siglip", "vit"),
    auto_class="AutoModel",
    outputs=("image_embeds",),
    embeds=True,
    parts=("preprocess", "ensemble"),
)
