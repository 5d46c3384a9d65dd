"""The HTML page is self-contained, safe and accessible; Markdown and JSON have the same content."""

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from probewise import DAF, FSDD, Tournament
from probewise.report import render_html, render_json, render_markdown, save, summarize, write_report
from probewise.report.html import SCRIPTS, TEMPLATES

VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """Elements in order, with their attributes and the text directly inside them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(text)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])
        if tag not in VOID:
            self.open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open:
            self.open[-1][2] += data

    def all(self, *tags):
        return [element for element in self.elements if element[0] in tags]


@pytest.fixture(scope="module")
def summary(saved_run, madelon):
    return summarize(
        saved_run[0], *madelon, source="<i>table</i>.csv", target="<u>label</u>", command="probewise rank <x>"
    )


@pytest.fixture(scope="module")
def page(summary):
    return Page(render_html(summary))


# ---- the page


def test_the_page_is_self_contained(page):
    scripts = [text for _, attributes, text in page.all("script") if attributes.get("type") != "application/json"]
    assert len(scripts) == 1
    assert not page.all("link", "iframe", "object", "img")
    assert all("src" not in attributes for _, attributes, _ in page.elements)
    assert all(attributes["href"].startswith("#") for _, attributes, _ in page.all("a"))
    policy = page.all("meta")[1][1]["content"]
    assert policy.startswith("default-src 'none'")
    for script in scripts:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
    ours = "".join((TEMPLATES / name).read_text() for name in ("report.css", *SCRIPTS))
    ours = ours.replace("http://www.w3.org/2000/svg", "")  # a namespace, not an address
    assert not re.search(r"https?:|url\(|@import|fetch\(|innerHTML|outerHTML|insertAdjacentHTML", ours)


def test_names_are_text(page, summary, hostile):
    assert not page.all("img", "i", "u", "b")
    cells = [text for _, _, text in page.all("th", "td", "div")]
    assert set(hostile) & set(summary["ranking"]["columns"]["feature"][:25]) <= set(cells)
    assert "<b>well</b>" in cells
    embedded = next(text for _, attributes, text in page.all("script") if attributes.get("id") == "report-data")
    assert not re.search(r"[<>&]", embedded)
    assert json.loads(embedded)["ranking"]["columns"]["feature"] == summary["ranking"]["columns"]["feature"]
    assert "<i>table</i>.csv" in page.all("title")[0][2]


def test_the_page_is_accessible(page):
    levels = [int(tag[1]) for tag, _, _ in page.all("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(attributes.get("scope") for _, attributes, _ in page.all("th"))
    plots = [attributes for _, attributes, _ in page.elements if "plot" in attributes.get("class", "").split()]
    assert len(plots) >= 8
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in plots)
    assert page.all("html")[0][1]["lang"] == "en"
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes, _ in page.all("a"):
        assert attributes["href"][1:] in ids
    for _, attributes, _ in page.all("section"):
        assert attributes["aria-labelledby"] in ids


def test_colors_have_enough_contrast():
    style = (TEMPLATES / "report.css").read_text()
    themes = re.findall(r"\{\s*(--paper.*?)color-scheme", style, re.DOTALL)
    assert len(themes) == 4  # light, dark by preference, dark by choice, print
    for theme in themes:
        colors = dict(re.findall(r"--([\w-]+): (#\w{6})", theme))
        for text in ("text", "muted", "accent"):
            for ground in ("paper", "card", "note"):
                assert contrast(colors[text], colors[ground]) >= 4.5, (text, ground, theme)
        if "s1" in colors:
            assert contrast(colors["accent-text"], colors["accent"]) >= 4.5
            assert all(contrast(colors[f"s{k}"], colors["paper"]) >= 4.5 for k in range(1, 7))


def contrast(one, other):
    """The contrast ratio of the Web Content Accessibility Guidelines."""

    def luminance(color):
        parts = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("what", ["ledger", "study", "study with data", "filter", "array"])
def test_every_kind_of_run_has_a_page(what, saved_run, study, madelon):
    X, y = madelon
    runs = {
        "ledger": (saved_run[1],),
        "study": (study[1],),
        "study with data": (study[0], X, y),
        "filter": (FSDD().fit(X, y), X, y),
        "array": (FSDD().fit(X.to_numpy(), y),),
    }
    page = Page(render_html(summarize(*runs[what])))
    assert page.all("h1")
    assert ("Comparison of methods" in [text for _, _, text in page.all("h2")]) == what.startswith("study")


def test_a_page_is_small(summary):
    assert len(render_html(summary).encode()) < 250_000


@pytest.mark.slow
def test_a_hundred_thousand_features_stay_below_10_mb():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((20, 100_000)).astype(np.float32), np.arange(20) % 2
    names = [f"probe set {column:06d}, gene {column % 997}" for column in range(X.shape[1])]
    page = render_html(summarize(FSDD().fit(X, y), X, y, feature_names=names))
    assert len(page.encode()) < 10_000_000
    assert page.count("<tr") < 500


# ---- files


def test_the_file_name_decides_the_format(summary, tmp_path):
    assert save(summary, tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert json.loads(save(summary, tmp_path / "a.json").read_text(encoding="utf-8")) == summary
    assert save(summary, str(tmp_path / "a.MD")).read_text(encoding="utf-8") == render_markdown(summary)
    with pytest.raises(ValueError, match=r"name it \.html, \.md or \.json"):
        save(summary, tmp_path / "a.pdf")
    with pytest.raises(ValueError, match="does not exist"):
        save(summary, tmp_path / "no" / "a.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ValueError, match="it is a folder"):
        save(summary, tmp_path / "folder.html")


def test_names_with_invalid_unicode_can_be_saved(tmp_path, madelon):
    X, y = madelon
    broken = summarize(FSDD().fit(X.to_numpy(), y), feature_names=["\udcff", *map(str, range(39))])
    for ending in ("html", "md", "json"):
        assert "\\udcff" in save(broken, tmp_path / f"a.{ending}").read_text(encoding="utf-8")


def test_the_selector_writes_its_report(saved_run, madelon, tmp_path):
    daf, _ = saved_run
    path = write_report(daf, tmp_path / "a.json", *madelon)
    assert json.loads(path.read_text())["sizes"]["suggested"] >= 1
    assert json.loads(write_report(daf, tmp_path / "b.json").read_text())["sizes"] is None
    with pytest.raises(ValueError, match="not fitted"):
        write_report(DAF(), tmp_path / "c.html")


def test_a_missing_extra_is_one_sentence(saved_run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'probewise\[report\]'"):
        write_report(saved_run[0], tmp_path / "a.html")
    write_report(saved_run[0], tmp_path / "a.md")
    write_report(saved_run[0], tmp_path / "a.json")


# ---- Markdown


def test_names_are_text_in_markdown(summary):
    text = render_markdown(summary)
    assert "<img" not in text
    assert "</script" not in text
    assert "&lt;img src=x onerror=" in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) >= 3
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1
    assert "```console\nprobewise rank <x>\n```" in text


def test_markdown_of_a_study(study):
    text = render_markdown(summarize(study[0]))
    assert "## Comparison of methods\n\n3 splits" in text
    assert "| bif − fsdd |" in text


def test_json_is_compact():
    assert render_json({"a": {"b": 1}}) == '{"a":{"b":1}}\n'


def test_noise_has_no_suggested_size():
    """Neither next to the verdict, nor in sentences, plots and tables."""
    random = np.random.default_rng(1)
    X, y = random.standard_normal((60, 40)), np.arange(60) % 2
    summary = summarize(Tournament(n_probes=400, random_state=0).fit(X, y), X, y)
    assert summary["nested_score"]["beats_guessing"] is False
    page, plain = render_html(summary), render_markdown(summary)
    assert "suggested size" not in page
    assert "No number of features predicts convincingly better than guessing; which one" in page
    assert ">suggested<" not in page
    assert "suggested" not in plain
    assert "A feature is related to the target if" in page
