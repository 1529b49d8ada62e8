"""Runs: pipelines over the questions of a dataset, kept on disk."""
