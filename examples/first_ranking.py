"""A first ranking: DAF finds features that are informative only in combination; BIF, feature by feature, does not."""

import numpy as np

from probewise import BIF, DAF
from probewise.datasets import make_madelon
from probewise.stopping import MaxProbes

data = make_madelon(n_samples=1000, n_features=200, random_state=0)  # 20 columns are informative
daf = DAF(20, stop=MaxProbes(3000), random_state=0, n_jobs=-1).fit(data.X, data.y)
bif = BIF(20).fit(data.X, data.y)

print("rank  feature  score            informative")
for feature in np.argsort(daf.ranking_)[:10]:
    score = f"{daf.scores_[feature]:.4f} ± {daf.std_errors_[feature]:.4f}"
    print(f"{daf.ranking_[feature]:4}  {data.feature_names[feature]:7}  {score}  {feature in data.informative}")

for selector in (daf, bif):
    n_found = selector.support_[data.informative].sum()
    print(f"{type(selector).__name__}: {n_found} of the 20 informative features are in its top 20")
