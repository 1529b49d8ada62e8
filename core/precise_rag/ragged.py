"""Slices of different lengths in one array: the tokens of texts, the words of rows, the rows of groups."""

import numpy as np

from precise_rag.types import IntArray


def slice_places(starts: IntArray, lengths: IntArray) -> IntArray:
    """(t,) the places in slices of an array, one slice after another; t is the sum of the lengths.

    starts: (n,) where each slice begins. lengths: (n,) of the slices.
    """
    return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
