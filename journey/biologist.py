"""A table from a spreadsheet, with IDs, decimal commas and missing cells: the page, and which way features go."""

import csv
import random
import subprocess
import sys
import time
from pathlib import Path

COMMAND = [Path(sys.executable).with_name("probewise")]
UP, DOWN = ["CD33", "CST3", "ZYX"], ["TCL1A", "CD19"]


def write_table(path):
    """60 patients and 300 genes, of which three are higher in AML, and two are lower."""
    rng = random.Random(0)
    genes = [*UP, *DOWN, *(f"gene{place}" for place in range(295))]
    rng.shuffle(genes)
    with open(path, "w", newline="") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(["patient", *genes, "diagnosis"])
        for row in range(60):
            diagnosis = "AML" if row % 2 else "ALL"
            shift = {**dict.fromkeys(UP, 2.5), **dict.fromkeys(DOWN, -2.5)} if diagnosis == "AML" else {}
            cells = [f"{8 + shift.get(gene, 0) + rng.gauss(0, 1):.2f}".replace(".", ",") for gene in genes]
            gaps = ["" if rng.random() < 0.005 else "." if rng.random() < 0.005 else cell for cell in cells]
            table.writerow([f"P-{row:03d}", *gaps, diagnosis])


def probewise(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, encoding="utf-8", check=False)


write_table("patients.csv")
start = time.perf_counter()
rank = ["rank", "patients.csv", "--target", "diagnosis", "--report", "page.html", "--out", "ranking.csv"]
done = probewise(*rank)
assert done.returncode == 0, done.stderr
assert "decimal commas" in done.stderr, done.stderr
assert "column 'patient' has a different text in every row" in done.stderr, done.stderr
assert "features are filled with the median" in done.stderr, done.stderr
print(f"the page by a second command, {time.perf_counter() - start:.0f} s after installation")

with open("ranking.csv", newline="") as file:
    ranking = list(csv.DictReader(file))[:5]
ways = {row["feature"]: row["higher_in"] for row in ranking}
assert ways == {**dict.fromkeys(UP, "AML"), **dict.fromkeys(DOWN, "ALL")}, ways
page = Path("page.html").read_text(encoding="utf-8")
assert all(gene in page for gene in ways)
print("; ".join(f"{gene} is higher in {way}" for gene, way in ways.items()))

with open("patients.csv", newline="") as file, open("turned.tsv", "w", newline="") as other:
    csv.writer(other, delimiter="\t").writerows(zip(*csv.reader(file, delimiter=";"), strict=True))
turned = probewise("rank", "turned.tsv", "--target", "diagnosis")
assert "features_in='rows'" in turned.stderr, turned.stderr
turned = probewise("rank", "turned.tsv", "--target", "diagnosis", "--features-in", "rows", "--method", "FSDD", "-q")
assert turned.returncode == 0, turned.stderr
assert set(ways) == {line.split()[1] for line in turned.stdout.splitlines()[3:8]}, turned.stdout
