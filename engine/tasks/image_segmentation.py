"""Image segmentation: the class of each pixel of an image, as a mask (semantic segmentation)."""

from engine.tasks.task import Modality, Task

TASK = Task(
    name="image-segmentation",
    modality=Modality.IMAGE,
    usual_models=("segformer", "beit"),
    auto_class="AutoModelForSemanticSegmentation",
    parts=("preprocess", "postprocess", "ensemble"),
    answers="engine.kit.triton.answers.mask",
)
