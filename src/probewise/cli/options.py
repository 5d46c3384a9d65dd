"""Options of the commands, declared as annotated types for typer.

An option that sets a parameter of a selector, of `Study` or of `read_table` has the name of that parameter.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)")


def seconds_in(text: str) -> float:
    """Seconds in a duration such as 90, 90s, 5m or 1h30m."""
    text = str(text).strip().lower()
    try:
        if re.fullmatch(rf"(?:{DURATION.pattern}\s*)+", text):
            seconds = sum(float(number) * SECONDS[unit] for number, unit in DURATION.findall(text))
        else:
            seconds = float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a duration: write seconds, or 90s, 5m, 1h30m") from None
    if not seconds > 0:
        raise typer.BadParameter(f"{text} is not above 0")
    return seconds


table_option = partial(typer.Option, rich_help_panel="The table")
feature_option = partial(typer.Option, rich_help_panel="The features (names of columns, separated by commas)")
method_option = partial(typer.Option, rich_help_panel="The method")
trial_option = partial(typer.Option, rich_help_panel="The trials")
output_option = partial(typer.Option, rich_help_panel="Output")
run_option = partial(typer.Option, rich_help_panel="The run")

# fmt: off
# ---- the table

Data = Annotated[str, typer.Argument(metavar="DATA", show_default=False, help=
    "The table to read: .csv, .tsv, .txt, .arff, .gct (also compressed as .gz, .bz2, .xz or .zst; - reads text from "
    "standard input), .xlsx, .parquet, .arrow, .feather, .svmlight, .libsvm, .npz, .h5ad, or .npy, which is mapped "
    "instead of read (see probewise convert).")]
Target = Annotated[str | None, table_option(metavar="COL", help=
    "The column to predict, by name or by number (the first column is 0). Not needed for formats that name their "
    "target. Rows without a target are left out.")]
TargetFile = Annotated[str | None, table_option(metavar="FILE", help="A second table that contains the target.")]
IdColumn = Annotated[str | None, table_option(metavar="COL", help=
    "The column that names the rows; it is not a feature. It matches the rows of --target-file. Default: a text "
    "column with a different value in every row.")]
Ignore = Annotated[list[str] | None, table_option(metavar="COL", help="A column to leave out. Can be repeated.")]
FeaturesIn = Annotated[str, table_option(metavar="columns|rows", help=
    "Use rows for a table with one feature per row (its name first) and one sample per column; --target is then the "
    "name of a row.")]
Decimal = Annotated[str | None, table_option(metavar="MARK", help=
    "The decimal mark of numbers in text: . or , (default: detected).")]
FeatureNames = Annotated[str | None, table_option(metavar="FILE", help=
    "A text file with one name per line, for formats without column names: svmlight, NPZ and NPY.")]
Missing = Annotated[str | None, table_option(metavar="mean|median|error", help=
    "Fill missing values with the mean or median of their column, or stop with an error. Default: median, for the "
    "methods that fill them.")]
SampleWeight = Annotated[str | None, table_option(metavar="COL", help=
    "The column of sample weights; it is not a feature.")]
Groups = Annotated[str | None, table_option(metavar="COL", help=
    "The column that groups the rows, such as a patient id; rows of one group stay in one fold. It is not a feature.")]
Event = Annotated[str | None, table_option(metavar="COL", help=
    "For survival times: the column that is 1 where the event happened at the time in --target, and 0 where the row is "
    "censored.")]
Adjust = Annotated[list[str] | None, table_option(metavar="COL", help=
    "A covariate, such as age or batch: features are judged by what they add to it. It is not a feature. Can be "
    "repeated.")]

# ---- the features

CategoricalFeatures = Annotated[list[str] | None, feature_option(metavar="COLS", help=
    "Columns of categories, as text or numbers. Each is one feature, encoded as one 0/1 column per category.")]
FeatureGroups = Annotated[list[str] | None, feature_option(metavar="NAME=COLS", help=
    "Features that enter probes together and share a rank. Can be repeated; or a table with the columns feature and "
    "group.")]
Keep = Annotated[list[str] | None, feature_option(metavar="COLS", help=
    "Features that are in every probe and are always selected.")]

# ---- the method

Criterion = Annotated[str | None, method_option(metavar="NAME", help=
    "How a subset of features is scored: knn, linear, naive_bayes, svm, tree or separability. Default: the average of "
    "knn and linear; for daf, knn, or linear above 5,000 rows.")]
Scoring = Annotated[str | None, method_option(metavar="NAME", help=
    "The score of predictions: accuracy; for rare classes balanced_accuracy, f1_macro, matthews_corrcoef or (two "
    "classes) roc_auc; for numbers r2 or neg_mean_squared_error; or another scorer of scikit-learn. Default: the "
    "probability of the true class; for daf, accuracy; for numbers, r2.")]
Cv = Annotated[str | None, method_option(metavar="N|loo", help=
    "The number of cross-validation folds, or loo for leave-one-out. Default: loo up to 2,000 rows, else 3; for daf, "
    "3.")]
Task = Annotated[str | None, method_option(metavar="classification|regression", help=
    "The kind of target. Default: regression if the target has fractions or many distinct whole numbers, else "
    "classification.")]
NProbes = Annotated[int | None, method_option(metavar="N", show_default=False, help=
    "The number of probes to score. A tournament plans its rounds by it. Default: 2,000 to 12,000, depending on the "
    "number of rows.")]
TimeLimit = Annotated[float | None, method_option(metavar="TIME", parser=seconds_in, help=
    "Stop after this time: seconds, or a duration such as 5m or 1h30m. A resumed run continues to count.")]
NFeaturesToSelect = Annotated[str | None, method_option(metavar="N|auto|stands_out", help=
    "How many features to select; auto: the fewest that predict as well as the best number, without near copies; for "
    "daf also stands_out: the features that are related to the target. Default: as many as --top.")]

Fdr = Annotated[str, method_option(metavar="SHARE|none", help=
    "The false discovery rate of the tests of features: the accepted share of false ones among the features that are "
    "called related to the target, or needed. none: no tests.")]

# ---- the trials of a comparison

Methods = Annotated[str, trial_option(metavar="NAMES", help=
    "Methods to compare, separated by commas; all means no selection.")]
Classifiers = Annotated[str, trial_option(metavar="NAMES", help=
    "Classifiers that test the selected features: knn, linear, svm, naive_bayes, tree, forest.")]
Trials = Annotated[int, trial_option(metavar="N", min=1, help="The number of random splits.")]
TestSize = Annotated[float, trial_option(metavar="SHARE", help="The share of rows to test on.")]
Sizes = Annotated[str | None, trial_option(metavar="NUMBERS", help=
    "Numbers of features to select, separated by commas: 5,10,20. Default: from 1 to at most 100.")]

# ---- output

Top = Annotated[int, output_option(metavar="N", min=1, help="How many features to show.")]
Out = Annotated[Path | None, output_option(metavar="FILE", help=
    "Write the complete table: .csv, .tsv, .xlsx, .parquet or .json; - prints it as CSV.")]
Report = Annotated[list[Path] | None, output_option(metavar="FILE", help=
    "Write a report: .html, .md or .json; - prints it as JSON. Can be repeated.")]
Select = Annotated[Path | None, output_option(metavar="FILE", help=
    "Write a smaller table with the selected features and the target: .csv, .tsv, .parquet, .arrow or .feather.")]
Plot = Annotated[Path | None, output_option(metavar="FILE", help="Draw the comparison: .png, .svg or .pdf.")]
Quiet = Annotated[bool, output_option("--quiet", "-q", help="Print results only: no progress and no notes.")]

# ---- the run

Ledger = Annotated[Path | None, run_option(metavar="FILE", help=
    "Keep the run in this file. If it holds a run of the same command already, that run is continued.")]
RandomState = Annotated[int | None, run_option(metavar="SEED", show_default=False, help=
    "The same seed gives the same result. Default: 0; a resumed run keeps its seed.")]
NJobs = Annotated[int, run_option(metavar="N", help=
    "The number of workers; -1 means all cores. Results do not depend on it.")]
Device = Annotated[str | None, run_option(metavar="NAME", help=
    "Where criteria run: cpu (the default), cuda (a GPU), or auto (a GPU if there is one).")]
