"""Measures of retrieval and answers, and their statistics.

positions.py   spans of any splitter on one line of characters and tokens
evidence.py    recall, precision and IoU of evidence at token budgets
ranking.py     Hits@k, MRR@k and nDCG@k of passages
answers.py     EM, F1, ROUGE-L, BLEU and METEOR of answers
statistics.py  bootstrap intervals and paired tests
"""
