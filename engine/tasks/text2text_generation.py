"""Text-to-text generation: an encoder reads a text, and a decoder writes a new text, as in translation."""

from engine.tasks.task import Generates, Task

TASK = Task(
    name="text2text-generation",
    usual_models=("t5", "bart", "marian", "m2m_100"),
    auto_class="AutoModelForSeq2SeqLM",
    generates=Generates.REWRITES,
    parts=("encoder", "decoder", "generate", "stream"),
    example=("The house is wonderful.",),
)
