"""What the benchmarks and the trainings share.

datasets.py    documents, and questions with the places of their evidence
evidence.py    recall of the evidence within budgets of tokens
statistics.py  intervals and paired tests, by scipy
answers.py     exact match and F1 of answers
units.py       what any splitter makes of a document, and plain search over it
run.py         pipelines over the questions of sets, and every measure of them
tables.py      results as Markdown pages
"""
