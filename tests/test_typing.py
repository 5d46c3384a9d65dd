"""A user's script under ``mypy --strict``: correct calls pass, and wrong ones are reported."""

import subprocess
import sys
from importlib.resources import files

import pytest

RIGHT = """
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from probewise import (
    BIF,
    CFS,
    CMIM,
    DAF,
    DFE,
    EFS,
    FCBF,
    FSDD,
    JMI,
    MRMR,
    SFFS,
    AdaptiveRandomForestClassifier,
    ReliefF,
)
from probewise.criteria import KNN, SVM, Linear, NaiveBayes, Scorer, Separability, Tree
from probewise.datasets import make_madelon
from probewise.discretize import Discretizer
from probewise.stability import StabilityInterval, anhi, ati, cw_rel, nogueira, nogueira_interval, stability_table
from probewise.stopping import MaxProbes, MaxTime, MinCoverage, RelativeChange, Rule, Settled, State
from probewise.study import Study, StudyResult

data = make_madelon(100, 30, random_state=0)
rule: Rule = (Settled(10, 0.9) & MinCoverage(20)) | MaxProbes(200) | MaxTime(10) | RelativeChange(0.01)


def enough(state: State) -> bool:
    return state.n_probes > 100 and state.tally.mean > 0.4


def mean_square(X: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    return float(np.mean(X**2))


daf: DAF = DAF(5, criterion=KNN(3), stop=rule, ledger=Path("run.ledger"), random_state=0, n_jobs=2).fit(data.X, data.y)
scores: NDArray[np.float64] = daf.scores_
ranking: NDArray[np.int64] = daf.ranking_
support: NDArray[np.bool_] = daf.support_
errors: NDArray[np.float64] = daf.std_errors_
daf1: NDArray[np.float64] = daf.coefficients("daf1")
reason: str = daf.stop_reason_
probes: int = daf.n_probes_
changes = daf.history_["order_change"]
counts: NDArray[np.int64] = daf.run_.feature_tally.counts
small: NDArray[np.float64] = daf.transform(data.X)
names: list[str] = [data.feature_names[feature] for feature in np.argsort(ranking)[:5]]

for criterion in (KNN(), Linear(alpha=2.0), NaiveBayes(), SVM("rbf"), Tree(), Separability("divergence"), Scorer(None)):
    DAF(criterion=criterion, stop=enough)
DAF(criterion=mean_square, stop=enough)

fsdd = FSDD(3, beta=2.0).partial_fit(data.X, data.y)
means: NDArray[np.float64] = fsdd.means_
efs = EFS(3, threshold=("top", 20)).fit(data.X, data.y)
sentence: str = efs.explain(0)
order: list[int] = efs.order_.tolist()
best: float = SFFS(3, criterion="knn").fit(data.X, data.y).path_[3][0]
for selector in (BIF(3), CFS(), CMIM(3), DFE(3), FCBF(), JMI(3), MRMR(3), ReliefF(3)):
    selector.fit(data.X, data.y)
first: NDArray[np.int64] = JMI(3).fit(data.X, data.y).order_
codes: NDArray[np.int32] = Discretizer("mdl").fit(data.X, data.y).transform(data.X)
forest = AdaptiveRandomForestClassifier(random_state=0).fit(data.X, data.y)
probabilities: NDArray[np.float64] = forest.predict_proba(data.X)

result: StudyResult = Study({"fsdd": FSDD(), "all": None}, {"forest": forest}, trials=2).compare(data.X, data.y)
accuracy: NDArray[np.float64] = result.accuracy
subsets = result.subsets("fsdd", 5)
measured: list[float] = [measure(subsets, 30) for measure in (cw_rel, ati, anhi, nogueira)]
interval: StabilityInterval = nogueira_interval(subsets, 30)
width: float = interval.upper - interval.lower
table = [record["measure"] for record in stability_table(subsets, 30)]
p_values = result.verdict(5)["p_holm"]
"""

WRONG = """
from probewise import DAF, EFS, JMI, SFFS
from probewise.criteria import KNN
from probewise.stability import cw_rel
from probewise.stopping import MaxProbes
from probewise.study import Study

DAF(5, criterium="knn")
KNN(n_neighbours=3)
MaxProbes("many")
MaxProbes(3) | "never"
Study({}, {}, trails=3)
value: str = cw_rel([[0], [1]], 3)
reason: int = DAF().fit([], []).stop_reason_
order: str = EFS().fit([], []).order_
more: str = JMI().fit([], []).order_
path: str = SFFS().fit([], []).path_
"""


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """A function of a script: what mypy says about it, and whether it is content."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("typed")

    def check(script):
        (folder / "script.py").write_text(script)
        words = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", "cache", "script.py"]
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)

    return check


def test_we_say_that_we_are_typed():
    assert files("probewise").joinpath("py.typed").is_file()


@pytest.mark.slow
def test_a_right_script_passes(mypy):
    done = mypy(RIGHT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_every_wrong_line_is_found(mypy):
    found = {int(line.split(":")[1]) for line in mypy(WRONG).stdout.splitlines() if ": error:" in line}
    first = WRONG[: WRONG.index("\nDAF(")].count("\n") + 2
    assert found == set(range(first, WRONG.count("\n") + 1))
