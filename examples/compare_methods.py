"""Compare methods with a Study: accuracy on held-out rows by number of features, and tests of the differences."""

from sklearn.neighbors import KNeighborsClassifier

from probewise import BIF, DAF, JMI
from probewise.datasets import make_madelon
from probewise.plots import save_study
from probewise.stopping import MaxProbes
from probewise.study import Study

data = make_madelon(600, 100, n_dimensions=3, n_combinations=7, random_state=0)  # 10 columns are informative
study = Study(
    {"DAF": DAF(stop=MaxProbes(1000)), "JMI": JMI(10), "BIF": BIF(), "all": None},
    {"3-NN": KNeighborsClassifier(3)},
    trials=5,
    sizes=[2, 4, 10],
    random_state=0,
)
result = study.compare(data.X, data.y)

print("features        " + "".join(f"{size:8}" for size in result.sizes))
for name, row in zip(result.selectors, result.accuracy.mean(axis=0)[:, 0], strict=True):
    print(f"{name:16}" + "".join(f"{value:8.3f}" for value in row))

verdict = result.verdict()
for first, second, difference, p in zip(
    *(verdict[k] for k in ("first", "second", "difference", "p_holm")), strict=True
):
    print(f"{first} - {second}: {difference:+.3f}, p = {p:.3f}")

save_study(result, "comparison.png")
print("The plot is in comparison.png.")
