# Everything that a clone needs, from a machine with nothing but Python: `make` lists it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# One thread a process: the tests' matrices are small, and two test processes share the cores.
# Each takes its half of the tests from one end, so that what neighbours share is made once.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal
TABLES = $(patsubst configs/table/%.yaml,%,$(sort $(wildcard configs/table/*/*.yaml)))

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast coverage test-nightly lint format bench tables docs clean
.DELETE_ON_ERROR:

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.develop ## Make .venv with everything for running, testing and checking

demo: $(VENV)/.runtime ## Train FPS-T on a generated web graph; ends with its result and pictures
	$(BIN)/python train.py dataset=synthetic_web trainer.max_steps=50 trainer.steps_per_epoch=10

test: $(VENV)/.develop ## Run all tests (no network needed; raw data is used where it is found)
	$(PYTEST)

test-fast: $(VENV)/.develop ## Run the quick tests
	$(PYTEST) -m 'not slow'

# Tracing the lines takes longer than the tests.
coverage: $(VENV)/.develop ## Run the quick tests and print how many lines they cover
	$(PYTEST) -m 'not slow' --cov --cov-fail-under=80

test-nightly: $(VENV)/.develop ## Run what only a nightly job has the time for
	$(PYTEST) -m nightly

lint: $(VENV)/.develop ## Check style, format, types and English
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/prose.py

format: $(VENV)/.develop ## Format the code and sort its imports
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.runtime ## Time training steps, ranking and distances, beside other code
	$(BIN)/python -m benchmarks all

tables: $(VENV)/.runtime ## Print every table of the papers with the numbers reproduced so far
	@for table in $(TABLES); do $(BIN)/python scripts/tables.py $$table || exit 1; done

# Not --quiet, with which mkdocs counts no warnings.
docs: $(VENV)/.docs ## Build the site into build/site; broken links fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## Remove the environment and all caches; data and outputs stay
	rm -rf $(VENV) build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is as old as the installation that it stands for.
$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what a run needs into $(VENV)"
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.develop: $(VENV)/.runtime
	@echo "installing what tests and checks need into $(VENV)"
	@$(INSTALL) --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.develop
	@echo "installing what the site needs into $(VENV)"
	@$(INSTALL) --editable '.[docs]'
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
		echo "there is no $(PYTHON): install Python 3.11 or newer, or name it, as in" \
			"make setup PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is older than 3.11: name a newer one, as in" \
			"make setup PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment: install its module venv" \
			"(Debian and Ubuntu: apt install python3-venv)" >&2; exit 2; }
