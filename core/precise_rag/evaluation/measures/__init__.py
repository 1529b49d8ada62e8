"""Measures: evidence at token budgets, rankings, answers, and what differences are worth."""
