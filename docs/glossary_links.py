"""Hook of mkdocs that links the first use of a glossary word on each page to its definition, with a tooltip."""

import html
import posixpath
import re
from pathlib import Path

PAGE = Path(__file__).with_name("glossary.md")
ENTRY = re.compile(r"^(\w+)\n: {3}(.+)$", re.MULTILINE)
# The words that are linked. A common English word is linked only in phrases in which it has our meaning.
PATTERNS = {
    "probe": r"probes?",
    "criterion": r"criterion|criteria",
    "J": r"J(?!\.)",  # not the initial of an author
    "block": r"blocks?(?= of probes| borders?| by block)|block(?=s are taken)",
    "look": r"(?<=at a )look|(?<=every )look|(?<=two )looks|(?<=between )looks|(?<=one )look(?= to the next)",
    "ledger": r"ledgers?",
}
TAG_OR_TEXT = re.compile(r"(<[^>]+>)")
WITHOUT_LINKS = ("a", "code", "pre", "h1", "h2", "h3", "h4", "math", "script", "style", "svg", "summary")


def definitions():
    """The definition of each word of the glossary, as plain text."""
    return dict(ENTRY.findall(PAGE.read_text(encoding="utf-8")))


def on_page_content(content, page, **_):
    """Add the links to a page; on the glossary itself, add the anchors."""
    if page.file.src_uri == "glossary.md":
        return re.sub(r"<dt>(\w+)</dt>", lambda term: f'<dt id="{term[1].lower()}">{term[1]}</dt>', content)
    glossary = posixpath.relpath("glossary.html", posixpath.dirname(page.url) or ".")
    meanings = definitions()
    for word, pattern in PATTERNS.items():
        content = with_link(content, pattern, f'{glossary}#{word.lower()}" title="{html.escape(meanings[word])}')
    return content


def with_link(content, pattern, target):
    """The page with a link at the first match outside of code, headings and links."""
    pattern, pieces, open_tags = re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])"), TAG_OR_TEXT.split(content), []
    for index, piece in enumerate(pieces):
        if piece.startswith("<"):
            _update_open_tags(piece, open_tags)
        elif not open_tags and (match := pattern.search(piece)):
            link = f'<a class="word" href="{target}">{match[0]}</a>'
            pieces[index] = piece[: match.start()] + link + piece[match.end() :]
            break
    return "".join(pieces)


def _update_open_tags(tag, open_tags):
    name = re.match(r"</?([\w-]+)", tag)
    if name and name[1] in WITHOUT_LINKS and not tag.endswith("/>"):
        if not tag.startswith("</"):
            open_tags.append(name[1])
        elif open_tags:
            open_tags.pop()
