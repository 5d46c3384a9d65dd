"""Makes docs/pictures: runs the examples of docs/plots.md and keeps the picture that each one draws."""

import os
import re
import sys
import tempfile
from pathlib import Path

import matplotlib
from matplotlib import pyplot as plt

HERE = Path(__file__).resolve().parent
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n?!\[[^\]]*\]\((pictures/[\w-]+\.svg)\))?", re.DOTALL | re.MULTILINE)

if __name__ == "__main__":
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "probewise"
    os.chdir(tempfile.mkdtemp())  # what the examples write themselves
    names = {"__name__": "__main__"}
    for code, picture in EXAMPLE.findall((HERE / "plots.md").read_text()):
        exec(code, names)
        if picture:
            plt.gcf().savefig(HERE / picture, metadata={"Date": None})
            sys.stdout.write(f"{picture}: {(HERE / picture).stat().st_size:,} bytes\n")
        plt.close("all")
