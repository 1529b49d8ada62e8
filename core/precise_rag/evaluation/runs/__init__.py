"""Pipelines, and their runs over the questions of a dataset.

plan.py         settings of pipelines, read from a TOML file (the packaged one: pipelines.toml)
pipeline.py     a pipeline built from its settings
run.py          the retrieved candidates of every question, kept in a file
measurer.py     all measures of a run, and tables of means
evaluate.py     runs, measures and a table for several pipelines and datasets
answering.py    answers by a language model from the text that was kept
metered.py      a language model that counts calls and tokens
environment.py  facts about the machine, the process and the libraries
lines.py        JSON Lines files
"""
