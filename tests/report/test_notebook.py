"""A notebook shows the top features of a fitted selector below scikit-learn's diagram."""

from html import escape

from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probewise import DAF, FSDD


def test_top_features_below_the_diagram(saved_run, hostile):
    daf, _ = saved_run
    shown = daf._repr_html_()
    bundle = daf._repr_mimebundle_()
    assert bundle["text/plain"] == repr(daf)
    for html in (shown, bundle["text/html"]):
        diagram, table = html.rsplit("<table><caption>", 1)
        assert "sk-" in diagram
        assert table.startswith("Top 10 of 40 features</caption>")
        assert table.count("<tr>") == 11
        assert "std error" in table
        assert "<img" not in table
    best = daf.feature_names_in_[daf.ranking_.argmin()]
    assert f'<th scope="row">{escape(best)}</th>' in shown


def test_without_errors_or_names(madelon):
    X, y = madelon
    shown = FSDD().fit(X.to_numpy()[:, :3], y)._repr_html_()
    assert "Top 3 of 3 features" in shown
    assert "std error" not in shown
    assert '<th scope="row">x0</th>' in shown


def test_an_unfitted_selector_has_only_the_diagram(saved_run):
    assert "Top " not in DAF()._repr_html_()
    assert "Top " not in DAF()._repr_mimebundle_()["text/html"]
    with config_context(display="text"):
        assert "text/html" not in saved_run[0]._repr_mimebundle_()
        assert not hasattr(saved_run[0], "_repr_html_")


def test_inside_a_pipeline_nothing_changes(madelon):
    X, y = madelon
    pipeline = make_pipeline(StandardScaler(), FSDD()).fit(X.to_numpy(), y)
    assert "FSDD" in pipeline._repr_html_()


def test_a_feature_without_a_score():
    shown = FSDD().fit([[1.0, float(row)] for row in range(4)], [0, 1, 0, 1])._repr_html_()
    assert "<td>–</td>" in shown
