"""Text classification: a class for each text, or for each pair of texts."""

from engine.tasks.task import Classes, Task

TASK = Task(
    name="text-classification",
    usual_models=("bert", "roberta", "deberta-v2", "modernbert"),
    auto_class="AutoModelForSequenceClassification",
    classes=Classes.ROWS,
    answers="engine.kit.triton.answers.classes",
)
