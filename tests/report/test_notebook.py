"""In a notebook a fitted selector shows its top features beneath scikit-learn's diagram."""

from html import escape

import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probewise import DAF, FSDD


def test_top_features_beneath_the_diagram(kept, hostile):
    daf, _ = kept
    shown = daf._repr_html_()
    bundle = daf._repr_mimebundle_()
    assert bundle["text/plain"] == repr(daf)
    for html in (shown, bundle["text/html"]):
        diagram, table = html.rsplit("<table><caption>", 1)
        assert "sk-" in diagram
        assert table.startswith("The top 10 of 40 features</caption>")
        assert table.count("<tr>") == 11
        assert "std error" in table
        assert "<img" not in table
    best = daf.feature_names_in_[daf.ranking_.argmin()]
    assert f'<th scope="row">{escape(best)}</th>' in shown


def test_without_errors_or_names(madelon):
    X, y = madelon
    shown = FSDD().fit(X.to_numpy()[:, :3], y)._repr_html_()
    assert "The top 3 of 3 features" in shown
    assert "std error" not in shown
    assert '<th scope="row">x0</th>' in shown


def test_unfitted_or_not_wanted_it_is_scikit_learns_own(kept):
    assert "The top" not in DAF()._repr_html_()
    assert "The top" not in DAF()._repr_mimebundle_()["text/html"]
    with config_context(display="text"):
        assert "text/html" not in kept[0]._repr_mimebundle_()
        assert not hasattr(kept[0], "_repr_html_")


def test_inside_a_pipeline_nothing_changes(madelon):
    X, y = madelon
    pipeline = make_pipeline(StandardScaler(), FSDD()).fit(X.to_numpy(), y)
    assert "FSDD" in pipeline._repr_html_()


@pytest.mark.parametrize("rows", [4])
def test_a_feature_without_a_score(rows):
    X = [[1.0, float(row)] for row in range(rows)]
    shown = FSDD().fit(X, [0, 1] * (rows // 2))._repr_html_()
    assert "<td>–</td>" in shown
