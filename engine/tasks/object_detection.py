"""Object detection: the boxes of the objects in an image, with their labels and scores."""

from engine.tasks.task import Modality, Task

TASK = Task(
    name="object-detection",
    modality=Modality.IMAGE,
    usual_models=("detr", "yolos", "rt_detr"),
    auto_class="AutoModelForObjectDetection",
    outputs=("logits", "pred_boxes"),
    parts=("preprocess", "postprocess", "ensemble"),
    answer_options=("threshold",),
    answers="engine.kit.triton.answers.boxes",
)
