"""Fill mask: the likeliest words in the place of each mask token."""

from engine.tasks.task import Task

TASK = Task(
    name="fill-mask",
    auto_class="AutoModelForMaskedLM",
    texts=1,
    example=("Paris is the [MASK] of France.",),
    answers="engine.kit.triton.answers.fillings",
)
