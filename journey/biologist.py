"""Journey of a biologist: a spreadsheet with ids, decimal commas and missing values; replicates and a metadata file."""

import csv
import json
import random
import subprocess
import sys
import time
from pathlib import Path

COMMAND = [Path(sys.executable).with_name("probewise")]
UP, DOWN = ["CD33", "CST3", "ZYX"], ["TCL1A", "CD19"]


def write_table(path):
    """Write 60 patients and 300 genes; three genes are higher in AML, two are lower."""
    rng = random.Random(0)
    genes = [*UP, *DOWN, *(f"gene{number}" for number in range(295))]
    rng.shuffle(genes)
    with open(path, "w", newline="") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(["patient", *genes, "diagnosis"])
        for row in range(60):
            diagnosis = "AML" if row % 2 else "ALL"
            shift = {**dict.fromkeys(UP, 2.5), **dict.fromkeys(DOWN, -2.5)} if diagnosis == "AML" else {}
            cells = [f"{8 + shift.get(gene, 0) + rng.gauss(0, 1):.2f}".replace(".", ",") for gene in genes]
            cells = ["" if rng.random() < 0.005 else "." if rng.random() < 0.005 else cell for cell in cells]
            table.writerow([f"P-{row:03d}", *cells, diagnosis])


def probewise(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, encoding="utf-8", check=False)


write_table("patients.csv")
start = time.perf_counter()
done = probewise("rank", "patients.csv", "--target", "diagnosis", "--report", "report.html", "--out", "ranking.csv")
assert done.returncode == 0, done.stderr
assert "decimal commas" in done.stderr, done.stderr
assert "it is read as id_column='patient'" in done.stderr, done.stderr
assert "are filled with the median" in done.stderr, done.stderr
print(f"one command after installation gives the report, in {time.perf_counter() - start:.0f} s")

with open("ranking.csv", newline="") as file:
    rows = list(csv.DictReader(file))
# Four of the genes predict without errors, so that a gene of noise may rank before the fifth; the test names none.
higher_in = {row["feature"]: row["higher_in"] for row in rows if row["related"] == "true"}
assert {row["feature"] for row in rows[:4]} < set(higher_in)
assert higher_in == {**dict.fromkeys(UP, "AML"), **dict.fromkeys(DOWN, "ALL")}, higher_in
report = Path("report.html").read_text(encoding="utf-8")
assert all(gene in report for gene in higher_in)
print("; ".join(f"{gene} is higher in {diagnosis}" for gene, diagnosis in higher_in.items()))

with open("patients.csv", newline="") as file, open("transposed.tsv", "w", newline="") as other:
    csv.writer(other, delimiter="\t").writerows(zip(*csv.reader(file, delimiter=";"), strict=True))
transposed = probewise("rank", "transposed.tsv", "--target", "diagnosis")
assert "features_in='rows'" in transposed.stderr, transposed.stderr
options = ("--target", "diagnosis", "--features-in", "rows", "--method", "fsdd", "-q")
transposed = probewise("rank", "transposed.tsv", *options)
assert transposed.returncode == 0, transposed.stderr
assert set(higher_in) == {line.split()[1] for line in transposed.stdout.splitlines()[3:8]}, transposed.stdout

rng = random.Random(1)  # three replicates of each of 20 patients; the diagnosis has nothing to do with the genes
with open("genes.csv", "w", newline="") as file, open("samples.csv", "w", newline="") as other:
    genes, samples = csv.writer(file), csv.writer(other)
    genes.writerow(["sample", *(f"gene{number}" for number in range(60))])
    samples.writerow(["sample", "patient", "diagnosis"])
    for patient in range(20):
        levels = [rng.gauss(8, 1) for _ in range(60)]
        for replicate in range(3):
            genes.writerow([f"{patient}-{replicate}", *(f"{level + rng.gauss(0, 0.1):.2f}" for level in levels)])
            samples.writerow([f"{patient}-{replicate}", f"P{patient}", "ill" if patient % 2 else "well"])
command = ["rank", "genes.csv", "--target-file", "samples.csv", "--target", "diagnosis", "--n-probes", "500"]
scores = {}
for options in ([], ["--groups", "patient"]):
    done = probewise(*command, *options, "--report", "report.json")
    assert done.returncode == 0, done.stderr
    assert ("nearly equal to another row" in done.stderr) == (not options), done.stderr
    assert ("use groups='patient'" in done.stderr) == (not options), done.stderr
    report = json.loads(Path("report.json").read_text(encoding="utf-8"))
    scores[len(options)] = report["nested_score"]["score"]
assert scores[0] > 0.8 > scores[2], scores
assert any("No number of features" in paragraph for paragraph in report["verdict"]), report["verdict"]
print(f"replicates: accuracy {scores[0]:.0%} without and {scores[2]:.0%} with groups, of noise")
