"""Script that draws docs/report.png and docs/report-dark.png: the first screen of a report on ``probewise demo``."""

import base64
import sys
import tempfile
from pathlib import Path

from probewise import DAF
from probewise.datasets import make_madelon
from probewise.io import Table
from probewise.report import save, summarize
from probewise.stopping import MaxProbes

FOLDER = Path(__file__).parent
WIDTH, HEIGHT = 1200, 1490

if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parent / "tests" / "report"))
    from browser import browser, show

    data = make_madelon(random_state=0)
    table = Table(data.X, data.y, data.feature_names, "class")
    daf = DAF(stop=MaxProbes(12_000), n_jobs=-1, random_state=0).fit(table.frame(), table.y)
    summary = summarize(daf, table.frame(), table.y, source="demo.csv", target="class")
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        path = save(summary, Path(folder) / "demo.html")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
        for name, dark in (("report.png", False), ("report-dark.png", True)):
            show(driver, path, width=WIDTH, dark=dark)
            screenshot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
            (FOLDER / name).write_bytes(base64.b64decode(screenshot["data"]))
