"""Journey of a chemist: spectra in which ten neighboring wavelengths say the same, and two bands are enough."""

import csv
import json
import subprocess
import sys

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score

rng = np.random.default_rng(0)
nm = np.arange(1100, 1400, 2)
peaks = np.exp(-(((nm - np.array([[1140], [1200], [1260], [1320], [1370]])) / 14) ** 2))
amounts = rng.lognormal(0, 0.3, (90, 5))
spectra = 0.05 * amounts @ peaks + 0.0002 * rng.standard_normal((90, len(nm)))
octane = 10 * amounts[:, 0] - 4 * amounts[:, 3] + 0.2 * rng.standard_normal(90)
with open("spectra.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow([*(f"{each} nm" for each in nm), "octane"])
    table.writerows(np.column_stack([spectra, octane]).round(6).tolist())

command = [sys.executable, "-m", "probewise", "rank", "spectra.csv", "--target", "octane", "--n-probes", "1500"]
command += ["--select", "small.csv", "--n-features-to-select", "auto", "--report", "report.json"]
done = subprocess.run([*command, "--report", "report.html"], capture_output=True, encoding="utf-8", check=False)
assert done.returncode == 0, done.stderr
with open("small.csv", newline="") as file:
    selected = next(csv.reader(file))[:-1]
with open("report.json", encoding="utf-8") as file:
    report = json.load(file)
assert report["sizes"]["suggested"] == len(selected) == 2, report["verdict"]
words = " ".join(report["verdict"])
assert "2 features are enough" in words, words
assert " nm)" in words, words  # the bands
assert "in the units of octane" in words, words
columns = [int(name.split()[0]) for name in selected]
r2 = cross_val_score(LinearRegression(), spectra[:, np.isin(nm, columns)], octane, cv=5).mean()
assert r2 > 0.9, r2
print(f"two wavelengths, {' and '.join(selected)}, explain {r2:.0%} of the variation: {report['verdict'][-1]}")
