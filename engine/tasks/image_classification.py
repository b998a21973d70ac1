"""Image classification: a class for each image, by a model of timm or an ONNX file."""

from engine.tasks.task import Classes, Modality, Task

TASK = Task(
    name="image-classification",
    modality=Modality.IMAGE,
    classes=Classes.ROWS,
    parts=("preprocess", "postprocess", "ensemble"),
    answers="engine.kit.triton.answers.classes",
)
