"""Kernels are compiled once per machine, with a notice, and come from the cache afterwards."""

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numba
import pytest
from numba.core import config

from probewise.kernels import jit
from probewise.kernels.vectors import has_feature

CODE = """
import numpy as np
from probewise.engine.probes import ProbePlan
ProbePlan(10, max_size=3).draw(0, 5)
"""


@pytest.mark.slow
def test_the_first_call_says_that_it_compiles_and_the_second_is_silent(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stderr.count("Compiling the numerical kernels") == 1
    assert second.stderr == ""
    another = "import numpy as np\nfrom probewise import FSDD\nFSDD().fit(np.eye(4), [0, 1, 0, 1])"
    third = subprocess.run([sys.executable, "-c", another], env=environment, capture_output=True, text=True, check=True)
    assert third.stderr == ""  # other kernels, but the line is shown once
    assert any(path.suffix == ".nbc" for path in tmp_path.rglob("*"))


def ran(code, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)


@pytest.mark.slow
def test_without_a_folder_to_write_kernels_are_compiled_every_time():
    own = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "NUMBA_CACHE_DIR": ""}
    assert "there is no writable cache folder" in ran(CODE, **own).stderr


@pytest.mark.slow
def test_a_full_disk_does_not_end_a_run(tmp_path):
    """A limit on the size of files stands for a full disk."""
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
    ran(limit + CODE, NUMBA_CACHE_DIR=str(tmp_path))
    assert not any(path.suffix == ".nbc" for path in tmp_path.rglob("*"))


def test_a_processor_named_by_the_user_gets_no_instructions_that_it_lacks(monkeypatch):
    try:
        monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
        config.reload_config()
        assert not has_feature("avx512vnni")
        monkeypatch.setenv("NUMBA_CPU_FEATURES", "+avx512f,+avx512vnni")
        config.reload_config()
        assert has_feature("avx512vnni")
        assert not has_feature("avx512bf16")
    finally:
        monkeypatch.undo()
        config.reload_config()


def test_an_edit_of_a_part_in_another_file_is_not_overlooked(tmp_path):
    """This happens in an editable install, and while a kernel is written."""
    package = tmp_path / "copied"
    package.mkdir()
    (package / "jit.py").write_bytes(Path(jit.__file__).read_bytes())
    (package / "whole.py").write_text(
        "from .jit import njit_cached\nfrom .parts import number\n\n@njit_cached\ndef told():\n    return number()\n"
    )
    for number in (1, 2):
        lines = ["from .jit import njit_helper", "@njit_helper", "def number():", f"    return {number}"]
        (package / "parts.py").write_text("\n".join(lines) + "\n")
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from copied.whole import told; print(told())"
        assert ran(code, NUMBA_CACHE_DIR=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1").stdout == f"{number}\n"


def test_functions_of_other_packages_may_have_no_module():
    """skglm compiles functions that were made by exec with an empty namespace."""
    function = FunctionType((lambda x: x + 1).__code__, {}, "function")
    function.__module__ = None
    assert numba.njit(function)(1) == 2
