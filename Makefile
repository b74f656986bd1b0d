# make demo   from nothing to a measured result: installs, runs the quickstart, prints what came out
# make lab    the quickstart in JupyterLab
# make test   everything the tests need, then the tests
# make test-gpu   the tests that need an NVIDIA GPU, where there is one
# make check  linters, types, architecture, front end
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NOTEBOOK ?= notebooks/quickstart.ipynb
PYTEST_ARGS ?=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo lab test test-gpu test-js check check-js clean

help:
	@sed -n 's/^# make/make/p' Makefile

demo: $(VENV)/.ready-demo
	@$(BIN)/python scripts/demo.py $(NOTEBOOK)

lab: $(VENV)/.ready-demo
	@$(BIN)/jupyter lab $(NOTEBOOK)

test: $(VENV)/.ready-test test-js
	@scripts/chromium.sh
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

# GPU machines often have their own torch: without a venv here, their Python runs the tests.
test-gpu:
	@$(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) -m pytest -m gpu $(PYTEST_ARGS)

# The built front end is in git: nobody needs Node to use or to test the Python side.
test-js:
	@if ! command -v npm >/dev/null; then echo "no Node here: skipping the front end's own tests"; \
	else $(MAKE) --no-print-directory node_modules/.ready && npm test; fi

check: $(VENV)/.ready-dev check-js
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

check-js: $(VENV)/.ready-dev
	@if ! command -v npm >/dev/null; then echo "no Node here: skipping the front end's checks"; \
	else $(MAKE) --no-print-directory node_modules/.ready && npm run check && scripts/assets_fresh.sh; fi

clean:
	rm -rf $(VENV) node_modules lib dist build *.egg-info tsconfig.tsbuildinfo
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@scripts/make_venv.sh "$(PYTHON)" "$(VENV)"

# One stamp per extra; each installs anew when what it depends on has changed.
$(VENV)/.ready-%: pyproject.toml constraints.txt package.json | $(BIN)/python
	@echo "installing kernelforge-lab[$*] into $(VENV) (the first time takes some minutes)"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$*]'
	@touch $@

node_modules/.ready: package-lock.json
	npm ci --no-audit --no-fund
	@touch $@
