"""Weights that ship with the package; docs/models has a card for each."""
