"""The import rules: layers point down, heavy libraries live in one place each, and importing us is fast."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "probewise"
MODULES = sorted(SOURCE.rglob("*.py"))

ROOT = SOURCE.parents[1]
BLOCK = re.compile(r"^```layers\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def stated_layers():
    """The block of CONTRIBUTING.md: from the ground up, the names of a layer, then two spaces and what it is for."""
    (block,) = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text())
    return [set(line.split("  ")[0].split()) for line in block.splitlines()]


# From the ground up; a module may import from layers below its own, and from its own package.
LAYERS = stated_layers()
# Imports that point up, each inside a function: a fitted selector writes its own report and shows itself in a notebook.
UPWARD = {"_selector.py": {"report"}}
DEVICE_HALVES = tuple(path.relative_to(SOURCE).as_posix() for path in MODULES if path.match("criteria/*_device.py"))
OWNERS = {
    "numba": ("kernels/",),
    "torch": ("kernels/device/", *DEVICE_HALVES),
    "triton": ("kernels/device/",),
    "joblib": ("executors.py",),
    "threadpoolctl": ("executors.py",),
    "dask": ("executors.py",),
    "distributed": ("executors.py",),
    "sqlite3": ("engine/ledger.py",),
    "polars": ("io/",),
    "zarr": (),  # users' arrays come through their interface
    "h5py": (),
    "typer": ("cli/app.py", "cli/options.py"),
    "matplotlib": ("plots/",),
    "jinja2": ("report/",),
    "rich": ("progress.py", "cli/console.py"),
}
HEAVY = (
    "torch", "dask", "distributed", "zarr", "h5py", "polars", "pandas", "matplotlib", "jinja2", "typer", "rich",
    "numba",
)  # fmt: skip


def layer(name):
    return next(number for number, names in enumerate(LAYERS) if name in names)


def imported(path):
    """(top-level library, or our own part) that a module imports, wherever the import stands."""
    part = path.relative_to(SOURCE).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0], None
        elif isinstance(node, ast.ImportFrom):
            base = part[: len(part) - node.level]
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            for name in names:
                yield None, (base[0] if base else name)
        elif isinstance(node, ast.Call) and _imports_by_name(node):
            parts = node.args[0].value.strip(".").split(".")
            yield (None, parts[1]) if parts[0] == "probewise" and len(parts) > 1 else (parts[0], None)


def _imports_by_name(call):
    """Whether a call is import_module or __import__ of a literal name."""
    function = getattr(call.func, "id", getattr(call.func, "attr", ""))
    is_constant = bool(call.args) and isinstance(call.args[0], ast.Constant)
    return function in ("import_module", "__import__") and is_constant


def test_every_module_has_one_layer_which_the_design_page_shows():
    stated = sorted(name for names in LAYERS for name in names)
    assert stated == sorted({path.relative_to(SOURCE).with_suffix("").parts[0] for path in MODULES} - {"__init__"})
    assert '--8<-- "CONTRIBUTING.md:layers"' in (ROOT / "docs" / "design.md").read_text().splitlines()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path):
    part = path.relative_to(SOURCE).with_suffix("").parts[0]
    if part == "__init__":
        return
    allowed = {"__version__", "_MODULE_OF", part} | UPWARD.get(path.relative_to(SOURCE).as_posix(), set())
    for _, ours in imported(path):
        if ours is not None and ours not in allowed:
            assert layer(ours) < layer(part), f"{part} imports {ours}, which is not below it"


@pytest.mark.parametrize("name", UPWARD)
def test_ways_up_are_taken_when_called(name):
    at_the_top = ast.parse((SOURCE / name).read_text()).body
    assert UPWARD[name] <= {ours for _, ours in imported(SOURCE / name)}
    for node in at_the_top:
        if isinstance(node, ast.ImportFrom):
            assert not UPWARD[name] & {(node.module or "").split(".")[0], *(alias.name for alias in node.names)}


def test_an_import_by_name_is_seen():
    calls = ["import_module('probewise.report')", "__import__('torch')", "importlib.import_module('probewise.cli.app')"]
    seen = [_imports_by_name(ast.parse(call).body[0].value) for call in [*calls, "import_module(name)"]]
    assert seen == [True, True, True, False]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_heavy_libraries_have_one_owner(path):
    name = path.relative_to(SOURCE).as_posix()
    for library, _ in imported(path):
        owners = OWNERS.get(library)
        assert owners is None or name.startswith(owners), f"{name} imports {library}; only {owners} may"


def test_every_module_says_what_it_is_for():
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path.name} has no first line"


@pytest.fixture(scope="module")
def loaded():
    """The modules that are loaded after each of these imports, in a new process."""
    steps = {
        "us": "import probewise",
        "others": "import sklearn.feature_selection, joblib, numba",
        "selectors": "from probewise import DAF, BIF",
        "study": "import probewise.study",
        "plots": "import probewise.plots",
    }
    script = "import json, sys\n" + "\n".join(f"{step}; print(json.dumps([*sys.modules]))" for step in steps.values())
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return dict(zip(steps, map(set, map(json.loads, done.stdout.splitlines())), strict=True))


def test_importing_us_loads_nothing_heavy(loaded):
    assert not loaded["us"] & set(HEAVY)


def test_the_selectors_load_nothing_for_show_or_clusters(loaded):
    light = set(HEAVY) - {"numba"}
    assert not (loaded["selectors"] - loaded["others"]) & light
    assert not loaded["selectors"] & {"polars", "typer"}


def test_the_study_loads_nothing_for_show(loaded):
    assert not loaded["study"] & {"polars", "matplotlib", "typer"}


def test_plots_load_nothing_before_they_are_drawn(loaded):
    assert "matplotlib" not in loaded["plots"]


def test_public_names_are_there():
    import probewise

    for name in probewise.__all__:
        assert getattr(probewise, name).__name__ == name
    assert "DAF" in dir(probewise)
    with pytest.raises(AttributeError, match="nothing"):
        _ = probewise.nothing
