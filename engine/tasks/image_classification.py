"""Image classification: a class for each image, by a model of transformers or timm, or by an ONNX file."""

from engine.tasks.task import Classes, Modality, Task

TASK = Task(
    name="image-classification",
    modality=Modality.IMAGE,
    usual_models=("vit", "convnext", "resnet", "swin"),
    timm=True,
    auto_class="AutoModelForImageClassification",
    classes=Classes.ROWS,
    parts=("preprocess", "postprocess", "ensemble"),
    answers="engine.kit.triton.answers.classes",
)
