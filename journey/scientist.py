"""Journey of a data scientist: a pipeline, a grid search, a data frame of results, and a notebook."""

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

data = make_madelon(200, 60, random_state=0)
X = pd.DataFrame(data.X, columns=data.feature_names)
pipeline = make_pipeline(FSDD(), LogisticRegression(max_iter=500))
search = GridSearchCV(pipeline, {"fsdd__n_features_to_select": [3, 10]}, cv=3).fit(X, data.y)
assert set(search.best_estimator_[0].get_feature_names_out()) <= set(X.columns)
tournament = Tournament(10, n_probes=500, random_state=0)
scores = cross_val_score(make_pipeline(tournament, LogisticRegression(max_iter=500)), X, data.y, cv=3)
assert scores.min() > 0.5, scores
frame = to_frame(tournament.fit(X, data.y), "pandas")
assert list(frame["feature"][:10]) == list(X.columns[np.argsort(tournament.ranking_)[:10]])
auto = make_pipeline(Tournament("auto", n_probes=300, random_state=0), LogisticRegression(max_iter=500)).fit(X, data.y)
assert 1 <= len(auto[0].get_feature_names_out()) <= 60
print(f"accuracy of a pipeline with Tournament: {scores.mean():.0%}")

cells = [
    "from probewise import Tournament\n"
    "from probewise.datasets import make_madelon\n"
    "from probewise.report import show_report, to_frame",
    "data = make_madelon(200, 60, random_state=0)",
    "best = Tournament(10, n_probes=500, random_state=0, verbose=1).fit(data.X, data.y)\nbest",
    "to_frame(best)",
    "show_report(best, data.X, data.y)",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=120).execute()
outputs = [output for cell in notebook.cells for output in cell.outputs]
assert not [output for output in outputs if output.output_type == "error"]
assert "<iframe" in str(notebook.cells[-1].outputs) or "<html" in str(notebook.cells[-1].outputs)
print(f"a notebook shows {len(outputs)} outputs, with the report inline")
