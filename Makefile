# make demo   the main job on real text: no key, no network beyond the package index
# make test   set up and run the tests
# make check  format, lint, types and import rules
# make docs   the documentation as a site, links checked
# make test-lowest   the adapters on the lowest supported framework versions

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DOCS ?=

.PHONY: demo test check format docs test-lowest

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

docs: $(VENV)/test
	$(BIN)/mkdocs build --quiet

LOWEST := llama-index-core==0.13.0 langchain-core==1.0.0 langchain-text-splitters==1.0.0 \
	langchain-classic==1.0.0 langchain-tests==1.0.0

# llama-index-core 0.13 finds its own NLTK data only through NLTK_DATA, and old versions warn on new pydantic.
test-lowest: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --upgrade pip
	.venv-lowest/bin/pip install --quiet -c constraints.txt -e '.[offline,openai]' $(LOWEST) \
		hypothesis pytest pytest-asyncio
	NLTK_DATA=$$(.venv-lowest/bin/python -c 'import llama_index.core as c; print(c.__path__[0])') \
		.venv-lowest/bin/python -m pytest -o filterwarnings=default \
		tests/llamaindex tests/langchain tests/surface/test_parity.py
