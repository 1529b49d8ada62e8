"""The documents of an index and their rows: segments, changes, snapshots."""
