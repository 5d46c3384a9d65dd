"""Words in sparse data: which words of scikit-learn's data set descriptions identify their topics?"""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer

from probewise import DAF, FSDD
from probewise.stopping import MaxProbes

texts, topics = [], []
for topic, load in {"cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris, "wine": load_wine}.items():
    lines = [line for line in load().DESCR.splitlines() if len(line.split()) > 3]
    texts += lines
    topics += [topic] * len(lines)

vectorizer = TfidfVectorizer(min_df=2)
X = vectorizer.fit_transform(texts)  # stays sparse
words = vectorizer.get_feature_names_out()
print(f"{X.shape[0]} lines, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} of the values are not zero")

daf = DAF(stop=MaxProbes(1500), max_probe_size=100, random_state=0).fit(X, topics)
for selector in (daf, FSDD().fit(X, topics)):
    print(f"{type(selector).__name__}:", ", ".join(words[np.argsort(selector.ranking_)[:10]]))
print("criterion of DAF:", daf.criterion_)
