"""One content as different people write YAML: blocks or brackets, quotes, margins, empty lines, comments anywhere."""

from hypothesis import strategies as st


@st.composite
def styled(draw, content):
    """Return a text of YAML with this content in a style that is drawn."""
    return _Writer(draw).text(content)


class _Writer:
    def __init__(self, draw):
        self.draw, self.count = draw, 0
        self.margin, self.dashes = draw(st.sampled_from([2, 3, 4])), draw(st.sampled_from([0, 2]))

    def text(self, content):
        lines = [*self.mapping(content, 0), self.comment()]
        return "\n".join(lines) + self.draw(st.sampled_from(["", "\n"]))

    def comment(self):
        self.count += 1
        return f'# c{self.count}: it\'s "so"' if self.draw(st.integers(0, 3)) == 0 else ""

    def flow(self, value):
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key}: {self.flow(each)}" for key, each in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.flow, value)) + "]"
        return f'"{value}"' if isinstance(value, str) and self.draw(st.booleans()) else str(value)

    def mapping(self, value, indent):
        for key, each in value.items():
            yield from self.above(indent)
            if isinstance(each, dict | list) and self.draw(st.booleans()):
                yield f"{' ' * indent}{key}:  {self.comment()}".rstrip()
                inner = self.mapping if isinstance(each, dict) else self.items
                yield from inner(each, indent + (self.margin if isinstance(each, dict) else self.dashes))
            else:
                yield f"{' ' * indent}{key}: {self.flow(each)}  {self.comment()}".rstrip()
            if self.draw(st.integers(0, 5)) == 0:
                yield ""

    def items(self, value, indent):
        for each in value:
            yield from self.above(indent)
            block = list(self.mapping(each, indent + 2)) if isinstance(each, dict) and self.draw(st.booleans()) else []
            if block and not block[0].strip().startswith("#"):
                yield f"{' ' * indent}- {block[0].strip()}"
                yield from block[1:]
            else:
                yield f"{' ' * indent}- {self.flow(each)}  {self.comment()}".rstrip()

    def above(self, indent):
        if comment := self.comment():
            yield " " * indent + comment
