"""Zero-shot image classification: how well each of several texts describes an image."""

from engine.tasks.task import Modality, Task

TASK = Task(
    name="zero-shot-image-classification",
    modality=Modality.IMAGE_AND_TEXTS,
    usual_models=("clip", "siglip"),
    auto_class="AutoModelForZeroShotImageClassification",
    outputs=("logits_per_image",),
    parts=("preprocess", "tokenizer", "postprocess", "ensemble"),
    example=("a photo of a cat", "a photo of a dog"),
    answers="engine.kit.triton.answers.candidates",
)
