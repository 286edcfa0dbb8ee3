# make demo: set up, train on the built-in reviews, show the evidence.   make test: set up, lint, types, tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt

.PHONY: demo test lint bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.base
	$(BIN)/infocal demo --out demo-model --report report.html

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term tests

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/speed.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.base

clean:
	rm -rf $(VENV) demo-model report.html .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
