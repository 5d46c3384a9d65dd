"""A headless Chromium for tests and pictures of the report."""

import shutil
import tempfile
from contextlib import contextmanager

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def why_not():
    """The reason why no browser is available, or None."""
    try:
        import selenium  # noqa: F401
    except ModuleNotFoundError:
        return "selenium is not installed: pip install selenium"
    if CHROMIUM is None or DRIVER is None:
        return "chromium and chromedriver are not installed: on Debian, apt-get install chromium chromium-driver"
    return None


@contextmanager
def browser():
    """A browser with a temporary profile and a log of console messages."""
    from selenium import webdriver

    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        try:
            yield driver
        finally:
            driver.quit()


def show(driver, path, *, width=1200, height=900, dark=False):
    """Open the file on a screen of this width, in light or dark mode, and wait until it is drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get(path.absolute().as_uri())
    WebDriverWait(driver, 60).until(lambda page: page.execute_script("return document.documentElement.dataset.drawn"))
    return driver
