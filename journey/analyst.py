"""Journey of an analyst: 5% of the customers leave, values are missing, and the raw frame has dates, text and ids."""

import csv
import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd

from probewise import Tournament, prepare

rng = np.random.default_rng(0)
n_rows, informative = 2000, [f"use{number}" for number in range(6)]
leaves = np.arange(n_rows) % 20 == 0
X = pd.DataFrame(rng.standard_normal((n_rows, 80)), columns=[f"use{number}" for number in range(80)])
X[informative] += 0.9 * leaves[:, None]
X = X.mask(rng.random(X.shape) < 0.03)
raw = X.assign(since=pd.date_range("2020-01-01", periods=n_rows), plan=rng.choice(["S", "M"], n_rows))
raw = raw.assign(customer_id=np.arange(n_rows) + 5000)

message = ""
try:
    Tournament().fit(raw, leaves)
except ValueError as error:
    message = str(error)
assert all(words in message for words in ("since", "plan", "missing values", "prepare")), message
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    table = prepare(raw)
assert len(caught) == 1, [str(each.message) for each in caught]
assert "customer_id" not in table.columns
table.assign(leaves=np.where(leaves, "yes", "no")).to_csv("customers.csv", index=False)
command = [sys.executable, "-m", "probewise", "rank", "customers.csv", "--target", "leaves"]
command += ["--categorical-features", "plan", "--n-probes", "1000", "--out", "ranking.csv", "--report", "report.json"]
done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
assert done.returncode == 0, done.stderr
assert "filled with the median" in done.stderr, done.stderr
with open("ranking.csv", newline="") as file:
    best = [row["feature"] for row in csv.DictReader(file)][:8]
assert len({*best} & {*informative}) >= 5, best
with open("report.json", encoding="utf-8") as file:
    verdict = json.load(file)["verdict"]
assert any("AUC = 0." in paragraph for paragraph in verdict), verdict
print(f"5% leave: {len({*best} & {*informative})} of 6 informative columns in the top 8; {verdict[-1]}")
