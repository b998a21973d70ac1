"""Question answering: the span of a context that answers a question."""

from engine.tasks.task import Task

TASK = Task(
    name="question-answering",
    usual_models=("bert", "roberta", "deberta-v2", "electra"),
    auto_class="AutoModelForQuestionAnswering",
    outputs=("start_logits", "end_logits"),
    texts=2,
    context=True,
    example=("Who wrote it?", "It was written by Ada."),
    answer_options=("align_to_words", "doc_stride", "handle_impossible_answer", "max_answer_len"),
    answers="engine.kit.triton.answers.spans",
)
