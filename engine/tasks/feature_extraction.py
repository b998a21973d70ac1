"""Feature extraction: the hidden states of a text, or the one vector of a sentence."""

from engine.tasks.task import Task

TASK = Task(
    name="feature-extraction",
    usual_models=("bert", "roberta", "mpnet", "modernbert"),
    auto_class="AutoModel",
    encoder_class="AutoModelForTextEncoding",
    outputs=("last_hidden_state",),
    texts=1,
    embeds=True,
    answers="engine.kit.triton.answers.vectors",
)
