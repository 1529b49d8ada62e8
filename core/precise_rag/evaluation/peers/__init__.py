"""Peers: splitters and retrievers of other libraries, for comparison."""
