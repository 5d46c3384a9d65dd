"""For the site: turns our docstrings ("name : what it is" under underlined headings) into Markdown."""

import re

from griffe import Extension

HEADING = re.compile(r"^([A-Z]\w+)\n-{3,}\n", re.MULTILINE)
ITEM = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<text>.*)$")
ON_ONE_LINE = re.compile(r"(?<=\.) (?=\w+_ : )")
LISTS = ("Parameters", "Attributes")


class PlainSections(Extension):
    """Rewrites every docstring before it is rendered; griffe's own parser is told to leave them alone."""

    def on_instance(self, *, obj, **_):
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring):
    head, *sections = HEADING.split(docstring)
    parts = [with_fences(head)]
    for name, body in zip(sections[::2], sections[1::2], strict=True):
        parts += [f"**{name}**", as_definitions(body) if name in LISTS else with_fences(body)]
    return "\n\n".join(part.strip("\n") for part in parts)


def as_definitions(body):
    """A definition list: the names, then what they are, continued lines joined."""
    lines = []
    for line in body.splitlines():
        for piece in [line] if line.startswith(" ") else ON_ONE_LINE.split(line):
            if item := ITEM.match(piece):
                names = ", ".join(f"`{name}`" for name in item["names"].split(", "))
                lines += ["", names, f":   {item['text']}"]
            else:
                lines.append(f"    {piece.strip()}" if piece.startswith(" ") else piece)
    return "\n".join(lines)


def with_fences(text):
    """Examples at a Python prompt as code."""
    blocks = text.split("\n\n")
    return "\n\n".join(f"```pycon\n{block.rstrip()}\n```" if block.startswith(">>> ") else block for block in blocks)
