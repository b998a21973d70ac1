"""Fill mask: the likeliest words in the place of each mask token."""

from engine.tasks.task import Task

TASK = Task(
    name="fill-mask",
    usual_models=("bert", "roberta", "deberta-v2", "modernbert"),
    auto_class="AutoModelForMaskedLM",
    texts=1,
    example=("Paris is the [MASK] of France.",),
    answers="engine.kit.triton.answers.fillings",
)
