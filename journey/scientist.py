"""A pipeline, a search over it, results as a frame, and a notebook in a real kernel."""

import nbformat
import numpy as np
import pandas as pd
from nbclient import NotebookClient
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from probewise import FSDD, Tournament
from probewise.datasets import make_madelon
from probewise.report import to_frame

made = make_madelon(200, 60, random_state=0)
X = pd.DataFrame(made.X, columns=made.feature_names)
pipeline = make_pipeline(FSDD(), LogisticRegression(max_iter=500))
search = GridSearchCV(pipeline, {"fsdd__n_features_to_select": [3, 10]}, cv=3).fit(X, made.y)
assert set(search.best_estimator_[0].get_feature_names_out()) <= set(X.columns)
chosen = Tournament(10, n_probes=500, random_state=0)
scores = cross_val_score(make_pipeline(chosen, LogisticRegression(max_iter=500)), X, made.y, cv=3)
assert scores.min() > 0.5, scores
frame = to_frame(chosen.fit(X, made.y), "pandas")
assert list(frame["feature"][:10]) == list(X.columns[np.argsort(chosen.ranking_)[:10]])
print(f"a pipeline with Tournament predicts {scores.mean():.0%} right")

cells = [
    "from probewise import Tournament\nfrom probewise.datasets import make_madelon",
    "made = make_madelon(200, 60, random_state=0)",
    "best = Tournament(10, n_probes=500, random_state=0, verbose=1).fit(made.X, made.y)\nbest",
    "best.to_frame()",
    "best.report(X=made.X, y=made.y)",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=120).execute()
shown = [output for cell in notebook.cells for output in cell.outputs]
assert not [output for output in shown if output.output_type == "error"]
assert "<iframe" in str(notebook.cells[-1].outputs) or "<html" in str(notebook.cells[-1].outputs)
print(f"a notebook shows {len(shown)} outputs, the report inline")
