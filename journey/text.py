"""Texts to a sparse matrix: the words that tell them apart, by name, on the command line and in Python."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from probewise import FSDD

rng = random.Random(0)
common = [f"word{place}" for place in range(400)]
topical = {"sport": ["goal", "team"], "money": ["bank", "price"]}
kinds = [kind for kind in topical for _ in range(60)]
texts = [" ".join(rng.choices(common, k=30) + rng.choices(topical[kind], k=2)) for kind in kinds]
words = TfidfVectorizer()
X = words.fit_transform(texts)
names = words.get_feature_names_out()
expected = {"goal", "team", "bank", "price"}

fsdd = FSDD(4).fit(X, kinds)
assert set(fsdd.get_feature_names_out(names)) == expected
page = fsdd.report("page.md", X, kinds, feature_names=names).read_text()
assert all(word in page for word in expected)

sparse = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
np.savez("texts.npz", **sparse, y=np.array(kinds), feature_names=names.astype(str))
command = [Path(sys.executable).with_name("probewise"), "rank", "texts.npz"]
done = subprocess.run([*command, "--top", "4", "-q", "--report", "page.html"], capture_output=True, encoding="utf-8")
assert done.returncode == 0, done.stderr
found = {line.split()[1] for line in done.stdout.splitlines()[3:7]}
assert found == expected, done.stdout
assert all(word in Path("page.html").read_text(encoding="utf-8") for word in expected)
print(f"{len(texts)} texts, {len(names)} words: {', '.join(sorted(found))}")
