"""Journey of a text analyst: the most informative words of a sparse matrix, on the command line and in Python."""

import random
import subprocess
import sys
from pathlib import Path

from sklearn.datasets import dump_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer

from probewise import FSDD, Tournament
from probewise.report import write_report

rng = random.Random(0)
common = [f"word{number}" for number in range(400)]
topical = {"sport": ["goal", "team"], "money": ["bank", "price"]}
topics = [topic for topic in topical for _ in range(60)]
texts = [" ".join(rng.choices(common, k=30) + rng.choices(topical[topic], k=2)) for topic in topics]
vectorizer = TfidfVectorizer()
X = vectorizer.fit_transform(texts)
words = vectorizer.get_feature_names_out()
expected = {"goal", "team", "bank", "price"}

fsdd = FSDD(4).fit(X, topics)
assert set(fsdd.get_feature_names_out(words)) == expected
auto = Tournament("auto", random_state=0).fit(X, topics)
assert set(words[auto.ranking_ <= 4]) == expected, words[auto.ranking_ <= 4]
assert 2 <= auto.support_.sum() <= 8, auto.size_curve_
report = write_report(fsdd, "report.md", X, topics, feature_names=words).read_text()
assert all(word in report for word in expected)

dump_svmlight_file(X, [topic == "sport" for topic in topics], "texts.svm", zero_based=True)
Path("vocabulary.txt").write_text("\n".join(words))
command = [Path(sys.executable).with_name("probewise"), "rank", "texts.svm", "--feature-names", "vocabulary.txt"]
done = subprocess.run([*command, "--top", "4", "-q", "--report", "report.html"], capture_output=True, encoding="utf-8")
assert done.returncode == 0, done.stderr
top_words = {line.split()[1] for line in done.stdout.splitlines()[3:7]}
assert top_words == expected, done.stdout
assert all(word in Path("report.html").read_text(encoding="utf-8") for word in expected)
print(f"{len(texts)} texts, {len(words)} words; the best words: {', '.join(sorted(top_words))}")
