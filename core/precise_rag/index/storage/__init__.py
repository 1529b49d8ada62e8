"""Saved indexes: how an index is written to a folder, read back and checked.

folder.py    writes the folder, in one step and under the lock
loading.py   reads it
manifest.py  what the index is, with the size, shape and checksum of each file
files.py     the arrays and documents
lock.py      one writer at a time, across processes and threads
settings.py  its settings, which load no models
"""
