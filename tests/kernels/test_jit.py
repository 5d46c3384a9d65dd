"""Kernels are compiled once per machine, say so while they are, and come from the cache afterwards."""

import os
import subprocess
import sys

CODE = """
import numpy as np
from probewise.probing.probes import ProbePlan
ProbePlan(10, max_size=3).draw(0, 5)
"""


def test_the_first_call_says_that_it_compiles_and_the_second_is_silent(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stderr.count("Compiling the numerical kernels") == 1
    assert second.stderr == ""
    assert any(path.suffix == ".nbc" for path in tmp_path.rglob("*"))
