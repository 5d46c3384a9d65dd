"""For the site: where a page first uses a word of glossary.md, it leads there; pointing at it shows what it means."""

import html
import posixpath
import re
from pathlib import Path

PAGE = Path(__file__).with_name("glossary.md")
ENTRY = re.compile(r"^(\w+)\n: {3}(.+)$", re.MULTILINE)
# Words that are common English too are ours only beside others.
SPELLED = {
    "probe": r"probes?",
    "J": r"J(?!\.)",  # no author's initial
    "ledger": r"ledgers?",
    "block": r"blocks?(?= of probes| borders?| by block)|block(?=s are taken)",
    "look": r"(?<=at a )look|(?<=every )look|(?<=two )looks|(?<=between )looks|looks(?= fall)",
}
PIECES = re.compile(r"(<[^>]+>)")
CLOSED = ("a", "code", "pre", "h1", "h2", "h3", "h4", "math", "script", "style", "svg", "summary")


def meanings():
    """What the glossary says of each word, as plain text."""
    return dict(ENTRY.findall(PAGE.read_text(encoding="utf-8")))


def on_page_content(content, page, **_):
    """A hook of mkdocs."""
    if page.file.src_uri == "glossary.md":
        return re.sub(r"<dt>(\w+)</dt>", lambda term: f'<dt id="{term[1].lower()}">{term[1]}</dt>', content)
    where = posixpath.relpath("glossary.html", posixpath.dirname(page.url) or ".")
    for word, meaning in meanings().items():
        content = linked(content, SPELLED[word], f'{where}#{word.lower()}" title="{html.escape(meaning)}')
    return content


def linked(content, spelled, target):
    """The page with a link from the first place, outside of code, headings and links, where the word is."""
    pattern, pieces, inside = re.compile(rf"(?<![\w-])(?:{spelled})(?![\w-])"), PIECES.split(content), []
    for place, piece in enumerate(pieces):
        if piece.startswith("<"):
            _enter_or_leave(piece, inside)
        elif not inside and (found := pattern.search(piece)):
            link = f'<a class="word" href="{target}">{found[0]}</a>'
            pieces[place] = piece[: found.start()] + link + piece[found.end() :]
            break
    return "".join(pieces)


def _enter_or_leave(tag, inside):
    name = re.match(r"</?([\w-]+)", tag)
    if name and name[1] in CLOSED and not tag.endswith("/>"):
        if not tag.startswith("</"):
            inside.append(name[1])
        elif inside:
            inside.pop()
