"""Script that draws docs/pictures: it runs the examples of docs/plots.md and saves the figure of each."""

import os
import re
import sys
import tempfile
from pathlib import Path

import matplotlib
from matplotlib import pyplot as plt

FOLDER = Path(__file__).resolve().parent
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n?!\[[^\]]*\]\((pictures/[\w-]+\.svg)\))?", re.DOTALL | re.MULTILINE)

if __name__ == "__main__":
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "probewise"
    os.chdir(tempfile.mkdtemp())  # for files that the examples write
    names = {"__name__": "__main__"}
    for code, picture in EXAMPLE.findall((FOLDER / "plots.md").read_text()):
        exec(code, names)
        if picture:
            plt.gcf().savefig(FOLDER / picture, metadata={"Date": None})
            sys.stdout.write(f"{picture}: {(FOLDER / picture).stat().st_size:,} bytes\n")
        plt.close("all")
