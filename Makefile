# Every target prepares its own virtual environment in .venv; only python3 (3.11 or newer) and make are needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Modules are compiled when they are first imported, most of them never; what is compiled is kept, whatever the
# environment says: the tests start some hundred processes, and imports are most of what a short one does.
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-uncompiled test-slow test-all test-device check journey bench docs clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# One stamp per set of extras, renewed when pyproject.toml changes.
$(VENV)/.venv-made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Probewise needs Python 3.11 or newer; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed-%: $(VENV)/.venv-made pyproject.toml
	$(PIP) -e '.[$*]'
	@touch $@

demo: $(VENV)/.installed-cli  ## rank the built-in data set with DAF and BIF, with a live display
	$(BIN)/probewise demo

# All that is not exhaustive in one go, as CI has it: make .venv/.with-torch test TESTS='not exhaustive'
TESTS ?= not exhaustive and not slow

test: $(VENV)/.installed-dev  ## run the tests, on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal -m '$(TESTS)'

test-uncompiled: $(VENV)/.installed-dev  ## run small tests with kernels as Python functions, as for debuggers
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -m '$(TESTS)' tests/engine/test_probes.py tests/kernels/test_ridge.py

test-slow: $(VENV)/.installed-dev  ## run those that take seconds each: pages of the docs, kill -9, browser, clusters
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'slow and not exhaustive'

test-all: $(VENV)/.installed-dev  ## run the tests with every case of every matrix and long runs of faults
	$(BIN)/python -m pytest -n 2 --dist worksteal -m ''

# A CPU build of torch is enough. Where pip finds none, it takes the one with CUDA, which is gigabytes.
TORCH ?= torch==2.13.0 triton==3.6.0

$(VENV)/.with-torch: $(VENV)/.installed-dev
	$(PIP) $(TORCH)
	@touch $@

test-device: $(VENV)/.with-torch  ## run the tests of the code for GPUs, on the CPU: adds torch
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/device

check: $(VENV)/.installed-dev  ## ruff, mypy and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_imports.py

journey:  ## walk through a fresh wheel in an empty environment as seven kinds of new users do
	$(PYTHON) journey/run.py

bench: $(VENV)/.installed-bench  ## measure speed and memory, side by side with what people use today
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed-docs  ## build the documentation site in site/; make test-slow runs every example in it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
