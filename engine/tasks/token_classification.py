"""Token classification: a class for each token of a text, for example to find named entities."""

from engine.tasks.task import Classes, Task

TASK = Task(
    name="token-classification",
    usual_models=("bert", "roberta", "deberta-v2", "modernbert"),
    auto_class="AutoModelForTokenClassification",
    texts=1,
    classes=Classes.TOKENS,
    answer_options=("aggregation_strategy",),
    answers="engine.kit.triton.answers.tags",
)
