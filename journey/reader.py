"""Journey of a reader: every example and command of the README and of the page about tables runs."""

import contextlib
import io
import re
import shlex
from pathlib import Path

from probewise.cli import run
from probewise.datasets import make_madelon

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "tables.md")
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
data = make_madelon(n_samples=120, n_features=60, random_state=0)
lines = [",".join([*data.feature_names, "diagnosis"])]
labels = ["healthy", "ill"]
lines += [",".join([*map(str, row), labels[label]]) for row, label in zip(data.X, data.y, strict=True)]
Path("genes.csv").write_text("\n".join(lines))
n_run = 0
for page in PAGES:
    names = {"__name__": "__main__"}
    for language, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(io.StringIO()):
            if language == "python":
                exec(compile(body, page.name, "exec"), names)
                n_run += 1
            for command in re.findall(r"^\$ probewise (.*)$", body, re.MULTILINE) if language == "console" else ():
                assert run(shlex.split(command, comments=True)) == 0, command
                n_run += 1
print(f"{n_run} examples and commands of {len(PAGES)} pages run")
