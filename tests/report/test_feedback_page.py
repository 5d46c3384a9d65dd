"""The page for relevance feedback: pictures, answers and faults over HTTP, and a search in a real browser."""

import contextlib
import io
import json
import queue
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest
from sklearn.datasets import load_digits

from probewise.feedback import FeedbackSession
from probewise.feedback_page import serve

from .browser import browser, why_not


def needs_browser(test):
    """A slow test, skipped where no browser is available."""
    return pytest.mark.slow(pytest.mark.skipif(why_not() is not None, reason=str(why_not()))(test))


@contextlib.contextmanager
def page(session, pictures, **options):
    """The address of a page that is served by a thread, which must have ended afterwards."""
    addresses = queue.Queue()
    options["open_page"] = addresses.put
    thread = threading.Thread(target=serve, args=(session, pictures), kwargs=options, daemon=True)
    thread.start()
    address = addresses.get(timeout=30)
    yield address
    with contextlib.suppress(OSError):  # the test may have ended it, and its socket may just be closing
        post(f"{address}finish", [], [])
    thread.join(timeout=30)
    assert not thread.is_alive()


def get(address):
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.headers, answer.read()


def post(address, rows, labels):
    body = json.dumps({"rows": rows, "labels": labels}).encode()
    with urllib.request.urlopen(address, body, timeout=60) as answer:
        return json.load(answer)


def refusal(address, body=None):
    with pytest.raises(urllib.error.HTTPError) as error, urllib.request.urlopen(address, body, timeout=30):
        pass
    with error.value:
        return error.value.code, error.value.read().decode()


def decoded(content):
    """The pixels of a PNG file."""
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(content)))


def test_answers_teach_the_session_like_tell(tmp_path, capsys):
    X, y = load_digits(return_X_y=True)
    session, twin = FeedbackSession(X, random_state=0), FeedbackSession(X, random_state=0)
    with page(session, X.reshape(-1, 8, 8), n_rows=15, save_as=tmp_path / "answers.json") as address:
        assert address.startswith("http://127.0.0.1:")
        assert f"The page is at {address} " in capsys.readouterr().out
        assert b"Which pictures are relevant?" in get(address)[1]
        state = post(f"{address}next", [], [])
        for _ in range(3):
            assert state["rows"] == twin.ask(15).tolist()
            labels = (y[state["rows"]] == 3).tolist()
            twin.tell(state["rows"], labels)
            state = post(f"{address}next", state["rows"], labels)
        assert state["relevant"] == twin.rows[twin.labels].tolist()
        assert state["status"] == f"45 of 1797 pictures are labeled, {twin.labels.sum()} are relevant."
        mistaken = state["relevant"][0]
        assert mistaken not in post(f"{address}next", [mistaken], [False])["relevant"]
        last = post(f"{address}finish", [], [])
        assert (last["rows"], last["finished"]) == ([], True)
    resumed = FeedbackSession.resume(tmp_path / "answers.json", X)
    assert (resumed.rows.tolist(), resumed.labels.tolist()) == (session.rows.tolist(), session.labels.tolist())


def test_pictures_keep_their_pixels():
    rng = np.random.default_rng(0)
    gray, color = rng.integers(0, 256, (4, 5, 7), np.uint8), rng.integers(0, 256, (4, 5, 7, 3), np.uint8)
    X = rng.normal(size=(4, 2))
    for pictures in (gray, color):
        with page(FeedbackSession(X), pictures) as address:
            np.testing.assert_array_equal(decoded(get(f"{address}picture/2")[1]), pictures[2])
    numbers = gray / 255 * 8 - 3
    numbers[0, 0, :2] = -3, 5
    with page(FeedbackSession(X), numbers) as address:
        np.testing.assert_array_equal(decoded(get(f"{address}picture/2")[1]), gray[2])
    with page(FeedbackSession(X), lambda row: b"file %d" % row) as address:
        assert get(f"{address}picture/3")[1] == b"file 3"
    with page(FeedbackSession(X), np.zeros((4, 2, 2))) as address:
        assert decoded(get(f"{address}picture/0")[1]).tolist() == [[0, 0], [0, 0]]


def test_faults_are_reported():
    X = np.random.default_rng(0).normal(size=(6, 3))
    for shape in ((5, 2, 2), (6, 4), (6, 2, 2, 2)):
        with pytest.raises(ValueError, match=r"pictures has shape .* give \(6, height, width\)"):
            serve(FeedbackSession(X), np.zeros(shape))
    with page(FeedbackSession(X), np.zeros((6, 2, 2))) as address:
        root = address.rsplit("/", 2)[0]
        assert refusal(f"{root}/guessed/")[0] == refusal(f"{root}/guessed/next", b"{}")[0] == 404
        status, text = refusal(f"{address}next", json.dumps({"rows": [6], "labels": [True]}).encode())
        assert status == 400
        assert "rows must be whole numbers from 0 to 5" in json.loads(text)["error"]
        done = post(f"{address}next", list(range(6)), [True, False] * 3)
        assert (done["rows"], done["relevant"]) == ([], [0, 2, 4])
        assert done["status"].endswith("3 are relevant. No unlabeled picture is left.")
        assert refusal(f"{address}picture/6")[0] == refusal(f"{address}picture/x")[0] == 404


@pytest.fixture(scope="module")
def chromium():
    with browser() as driver:
        yield driver


def search(driver, address, y, wanted, rounds):
    """Click the pictures of a class for some rounds, as a person would; the number of hits in each round."""
    from selenium.webdriver.support.ui import WebDriverWait

    def settled(_):
        loaded = "return [...document.images].every((image) => image.complete && image.naturalWidth > 0)"
        status = driver.find_element("id", "status").text
        return "labeled" in status and status != before and driver.execute_script(loaded)

    before, hits = "", []
    driver.get(address)
    for _ in range(rounds):
        WebDriverWait(driver, 60).until(settled)
        before = driver.find_element("id", "status").text
        asked = driver.find_elements("css selector", "#asked button")
        relevant = [button for button in asked if y[int(button.get_attribute("data-row"))] == wanted]
        for button in relevant:
            button.click()
            assert button.get_attribute("aria-pressed") == "true"
        hits.append(len(relevant))
        driver.find_element("id", "next").click()
    WebDriverWait(driver, 60).until(settled)
    return hits


@pytest.mark.parametrize("width", [1200, 390])
@needs_browser
def test_a_person_finds_digits(chromium, width, tmp_path):
    X, y = load_digits(return_X_y=True)
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    session = FeedbackSession(X, random_state=0)
    with page(session, X.reshape(-1, 8, 8), save_as=tmp_path / "answers.json") as address:
        hits = search(chromium, address, y, 3, 4)
        assert hits == [1, 8, 20, 20]  # as in the documentation, where labels answer
        found = chromium.find_elements("css selector", "#relevant button")
        assert len(found) == sum(hits)
        assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
        found[0].click()  # a mistake is taken back
        mistaken = int(found[0].get_attribute("data-row"))
        last = chromium.find_elements("css selector", "#asked button")[:2]  # the others were perhaps not looked at
        for button in last:
            button.click()
        chromium.find_element("id", "finish").click()
        wait_for(lambda: "You can close this page" in chromium.find_element("id", "status").text)
        assert not chromium.find_element("id", "next").is_enabled()
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    assert dict(zip(session.rows.tolist(), session.labels.tolist(), strict=True))[mistaken] is False
    assert (len(session.rows), session.labels.sum()) == (82, sum(hits) + 1)


@needs_browser
def test_an_error_is_shown_and_the_answers_stay(chromium):
    class Fails(FeedbackSession):
        def ask(self, n_rows=20):
            if len(self.rows):
                raise ValueError("nothing can be fitted")
            return super().ask(n_rows)

    X = np.random.default_rng(0).normal(size=(8, 4))
    with page(Fails(X, random_state=0), X.reshape(-1, 2, 2), n_rows=4) as address:
        chromium.get(address)
        wait_for(lambda: len(chromium.find_elements("css selector", "#asked button")) == 4)
        chromium.find_element("css selector", "#asked button").click()
        chromium.find_element("id", "next").click()
        wait_for(lambda: chromium.find_element("id", "status").text == "Error: nothing can be fitted")
        assert chromium.find_element("css selector", "#asked button").get_attribute("aria-pressed") == "true"
        assert chromium.find_element("id", "finish").is_enabled()
    chromium.get_log("browser")  # the status 400 is logged there


@pytest.mark.shared_data
@needs_browser
def test_a_person_finds_an_object_of_coil_20(chromium, real_data):
    data = real_data("coil20")
    session = FeedbackSession(data["X"], random_state=0).tell([int(np.flatnonzero(data["y"] == 4)[0])], [True])
    with page(session, data["X"].reshape(-1, 32, 32).transpose(0, 2, 1)) as address:
        hits = search(chromium, address, data["y"], 4, 4)
    assert sum(hits) >= 40  # of 72 pictures of this object among 1,440
    assert session.labels.sum() == 1 + sum(hits)


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        threading.Event().wait(0.1)
    raise AssertionError("waited for a minute")
