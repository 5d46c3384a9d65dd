"""The page in a real browser: plots, sorting, search, themes, and hostile names that must not run."""

import time

import numpy as np
import polars as pl
import pytest

from probewise import DAF, FSDD, JMI, Tournament
from probewise.datasets import make_madelon
from probewise.io import Table
from probewise.report import save, summarize
from probewise.stopping import MaxProbes

from .browser import browser, show, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


@pytest.fixture(scope="module")
def chromium():
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The report of a demo."""
    data = make_madelon(random_state=0)
    table = Table(data.X, data.y, data.feature_names, "class")
    daf = DAF(criterion="naive_bayes", stop=MaxProbes(2000), random_state=0).fit(table.frame(), table.y)
    summary = summarize(daf, table.frame(), table.y, source="demo", target="class")
    return save(summary, tmp_path_factory.mktemp("demo") / "demo.html")


@pytest.fixture(scope="module")
def wide(hostile, tmp_path_factory):
    """The report of 20,000 features; the best of them have hostile names."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 20_000)).astype(np.float32), np.arange(60) % 2
    X[:, [7, 11]] += 4 * y[:, None]
    names = [f"gene {column}" for column in range(X.shape[1])]
    names[7], names[11] = hostile
    table = Table(X, y, names, "ill")
    daf = DAF(criterion="naive_bayes", max_probe_size=2000, stop=MaxProbes(1000), random_state=0)
    summary = summarize(daf.fit(table.frame(), y), table.frame(), y, source="wide.csv", target="ill")
    return save(summary, tmp_path_factory.mktemp("wide") / "wide.html")


def column(driver, place):
    script = (
        "return [...document.querySelectorAll('#features tbody tr')].map((row) => row.cells[arguments[0]].textContent)"
    )
    return driver.execute_script(script, place)


def click(driver, selector):
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def search(driver, text):
    field = driver.find_element("id", "search")
    field.clear()
    field.send_keys(text)
    time.sleep(0.5)  # the page waits for the end of typing


def hover(driver, plot, mark):
    """The tooltip of the first such mark."""
    script = (
        "const box = document.querySelector(arguments[1]).getBoundingClientRect();"
        "const point = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};"
        "document.querySelector(arguments[0] + ' svg').dispatchEvent(new PointerEvent('pointermove', point));"
        "return document.querySelector(arguments[0] + ' .tip').textContent"
    )
    return driver.execute_script(script, plot, mark)


def console_messages(driver):
    return [entry["message"] for entry in driver.get_log("browser")]


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_everything_is_drawn(chromium, demo, width, dark):
    show(chromium, demo, width=width, dark=dark)
    assert console_messages(chromium) == []
    drawn = (
        "return [...document.querySelectorAll('.plot')].map((plot) => [plot.id, plot.querySelectorAll('svg').length])"
    )
    plots = dict(chromium.execute_script(drawn))
    assert set(plots) >= {
        "plot-ranking",
        "plot-values-0",
        "plot-values-11",
        "plot-sizes",
        "plot-overlap",
        "plot-univariate",
        "plot-redundancy",
        "plot-pair-0",
    }
    assert all(plots.values())
    points = chromium.execute_script("return document.querySelectorAll('#plot-ranking .point').length")
    assert points == (20 if width < 640 else 30)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    ends = "return [...document.querySelectorAll('caption > span')].map((words) => words.getBoundingClientRect().right)"
    assert max(chromium.execute_script(ends)) <= width
    lines = "return [...document.querySelectorAll('th .whole')].map((words) => words.getClientRects().length)"
    assert set(chromium.execute_script(lines)) <= {1}
    fits = (
        "const table = document.getElementById('features'); return table.scrollWidth <= table.parentElement.clientWidth"
    )
    assert width < 640 or chromium.execute_script(fits)
    paper = chromium.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(18, 23, 28)" if dark else "rgb(255, 255, 255)")


def test_the_table_sorts_searches_and_turns_pages(chromium, demo):
    show(chromium, demo)
    ranks = [f"{rank}" for rank in range(1, 26)]
    assert column(chromium, 0) == ranks
    click(chromium, "#features th[data-key=feature] button")
    assert column(chromium, 1) == [f"f{place:03d}" for place in range(25)]
    click(chromium, "#features th[data-key=feature] button")
    assert column(chromium, 1)[0] == "f499"
    head = chromium.find_element("css selector", "#features th[data-key=feature]")
    assert head.get_attribute("aria-sort") == "descending"
    assert len(chromium.find_elements("css selector", "#features [aria-sort]")) == 1
    click(chromium, "#features th[data-key=std_error] button")
    errors = [float(error) for error in column(chromium, 3)]
    assert errors == sorted(errors, reverse=True)
    click(chromium, "#features th[data-key=rank] button")
    click(chromium, "#next")
    assert column(chromium, 0) == [f"{rank}" for rank in range(26, 51)]
    click(chromium, "#last")
    assert column(chromium, 0)[-1] == "500"
    search(chromium, "F49")
    assert sorted(column(chromium, 1)) == [f"f49{digit}" for digit in range(10)]
    assert chromium.find_element("id", "status").text == "1 to 10 of 10 found in 500"
    search(chromium, "nowhere")
    assert column(chromium, 1) == []
    assert chromium.find_element("id", "status").text == "No feature name matches"
    assert console_messages(chromium) == []


def test_names_and_ranking_can_be_exported(chromium, wide, hostile, tmp_path):
    show(chromium, wide)
    chromium.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    chromium.execute_script("Object.assign(navigator.clipboard, {writeText: async (text) => { window.copied = text }})")
    many = chromium.find_element("id", "how-many")
    many.clear()
    many.send_keys("3")
    for button in ("copy-names", "save-names", "save-ranking"):
        click(chromium, f"#{button}")
    wait_for(lambda: {path.name for path in tmp_path.iterdir()} == {"top-3.txt", "ranking.csv"})
    names = (tmp_path / "top-3.txt").read_text(encoding="utf-8")
    assert names.splitlines()[:2] == column(chromium, 1)[:2]
    assert set(names.splitlines()[:2]) == set(hostile)
    assert names.count("\n") == 3
    assert chromium.execute_script("return window.copied") == names
    assert chromium.find_element("id", "copied").text == "3 names copied"
    ranking = pl.read_csv(tmp_path / "ranking.csv")
    assert ranking.height == 20_000
    assert ranking["feature"][:3].to_list() == names.splitlines()
    assert {"rank", "score", "std_error", "higher_in", "difference_low", "related", "needed"} <= set(ranking.columns)
    assert console_messages(chromium) == []


def wait_for(condition):
    for _ in range(100):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("waited for ten seconds")


def test_the_keyboard_is_enough(chromium, demo):
    from selenium.webdriver import ActionChains, Keys

    show(chromium, demo)
    chromium.find_element("id", "search").send_keys("f")
    for _ in range(9):  # rows per page, size of the top and three buttons, the table, three column headers
        ActionChains(chromium).send_keys(Keys.TAB).perform()
    head = chromium.find_element("css selector", "#features th[data-key=above_average]")
    button = head.find_element("tag name", "button")
    assert chromium.switch_to.active_element == button
    assert chromium.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    button.send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "descending"
    button.send_keys(Keys.SPACE)
    assert head.get_attribute("aria-sort") == "ascending"


def test_the_theme_button(chromium, demo):
    show(chromium, demo)
    label = "return getComputedStyle(document.querySelector('#plot-ranking .ytick')).fill"
    before = chromium.execute_script(label)
    click(chromium, "#theme")
    assert chromium.execute_script("return document.documentElement.dataset.theme") == "dark"
    assert chromium.find_element("id", "theme").text == "Light mode"
    assert chromium.execute_script(label) != before
    click(chromium, "#theme")
    assert chromium.execute_script(label) == before
    assert console_messages(chromium) == []


def test_hostile_names_stay_text_and_20_000_rows_are_fast(chromium, wide, hostile):
    show(chromium, wide)
    assert set(column(chromium, 1)[:2]) == set(hostile)
    assert chromium.execute_script("return window.attacked") is None
    assert chromium.find_elements("css selector", "img, #features script, .plot script") == []
    labels = "return [...document.querySelectorAll('#plot-ranking .ytick')].map((label) => label.firstChild.data)"
    assert any(label.startswith("<img src=x") for label in chromium.execute_script(labels))
    shown = hover(chromium, "#plot-ranking", "#plot-ranking .point")
    assert "<" in shown
    assert "higher in 1 by " in shown
    assert chromium.find_elements("css selector", ".plot img") == []
    took = (
        "const start = performance.now(); document.querySelector('#features th[data-key=feature] button').click();"
        "document.body.offsetHeight; return performance.now() - start"
    )
    assert chromium.execute_script(took) < 5000
    search(chromium, "gene 1999")
    assert len(column(chromium, 1)) == 11
    search(chromium, "<img")
    assert column(chromium, 1) == [hostile[0]]
    assert chromium.execute_script("return window.attacked") is None
    assert console_messages(chromium) == []


def test_sequential_methods_have_a_chart_of_ranks(chromium, madelon, tmp_path):
    X, y = madelon
    show(chromium, save(summarize(JMI(8).fit(X, y), X, y), tmp_path / "jmi.html"))
    script = "return [...document.querySelectorAll('#plot-ranking rect.point')].map((bar) => bar.width.baseVal.value)"
    lengths = chromium.execute_script(script)
    assert len(lengths) == 30
    assert lengths == sorted(lengths, reverse=True)
    assert console_messages(chromium) == []


def test_a_tournament_has_a_chart_of_scores_with_errors(chromium, madelon, tmp_path):
    """The features of the last round have scores; dropped features are in the table only."""
    X, y = madelon
    summary = summarize(Tournament(n_probes=600, random_state=0).fit(X, y), X, y)
    scores = [score for score in summary["ranking"]["columns"]["score"] if score is not None]
    assert len(scores) < 30
    assert scores == sorted(scores, reverse=True)
    show(chromium, save(summary, tmp_path / "tournament.html"))
    count = "return document.querySelectorAll(arguments[0]).length"
    assert chromium.execute_script(count, "#plot-ranking rect.point") == 0
    assert chromium.execute_script(count, "#plot-ranking .point") == len(scores)
    assert "score, above average" in chromium.find_element("id", "plot-ranking").text
    assert console_messages(chromium) == []


def test_long_names_are_truncated_and_numbered(chromium, tmp_path):
    X, y = np.random.default_rng(0).standard_normal((30, 3)), np.arange(30) % 2
    names = ["a name that is far too long, one of those with the same end", "short"]
    names.append(names[0].replace("one", "two"))
    show(chromium, save(summarize(FSDD().fit(X, y), feature_names=names), tmp_path / "long.html"))
    script = (
        "return [...document.querySelectorAll('#plot-ranking .ytick')]"
        ".map((label) => [label.firstChild.data, label.querySelector('title')?.textContent])"
    )
    labels = chromium.execute_script(script)
    assert {full or label for label, full in labels} == set(names)
    assert len({label for label, _ in labels}) == 3
    assert sorted(label[-3:] for label, full in labels if full) == ["(1)", "(2)"]


def test_a_study_is_drawn(chromium, study, madelon, tmp_path):
    show(chromium, save(summarize(study[0], *madelon), tmp_path / "study.html"))
    marks = "return document.querySelectorAll(arguments[0]).length"
    assert chromium.execute_script(marks, "#plot-study-0 .line") == 3
    assert chromium.execute_script(marks, "#plot-study-0 .band") == 3
    assert (
        chromium.execute_script(marks, "#plot-stability .point") == 4
    )  # the method with all features has no stability
    assert hover(chromium, "#plot-stability", "#plot-stability .point").startswith("bif2 features: ")
    assert console_messages(chromium) == []


def test_printing(chromium, demo):
    show(chromium, demo, dark=True)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    paper = chromium.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    assert not chromium.find_element("id", "theme").is_displayed()
    chromium.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    ink = chromium.execute_script("return getComputedStyle(document.querySelector('#plot-ranking .ytick')).fill")
    widest = "return Math.max(...[...document.querySelectorAll('.plot svg')].map((svg) => svg.clientWidth))"
    assert 500 < chromium.execute_script(widest) <= 680
    assert chromium.execute_script("return document.getElementById('features').scrollWidth") <= 680
    chromium.execute_script("window.dispatchEvent(new Event('afterprint'))")
    time.sleep(1)
    assert chromium.execute_script(widest) > 900
    assert ink == "rgb(0, 0, 0)"
    assert console_messages(chromium) == []
