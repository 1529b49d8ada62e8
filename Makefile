# make demo   the main job on real text: no key, no network beyond the package index
# make test   set up and run the tests
# make check  format, lint, types and import rules

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DOCS ?=

.PHONY: demo test check format

$(VENV)/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/test: $(VENV)/demo
	$(BIN)/pip install --quiet -c constraints.txt -e '.[test]'
	touch $@

demo: $(VENV)/demo
	$(BIN)/precise demo $(DOCS)

test: $(VENV)/test
	$(BIN)/python -m pytest

check: $(VENV)/test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
