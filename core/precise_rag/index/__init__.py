"""Indexes: they store documents and return scored candidates for a query.

index.py, load.py                   what users call: build, add, search, save, load
sentence_index.py                   the same for kinds that score sentences with their context
dense.py, hybrid.py, sentence_context.py, word_sentence.py   a kind each: its settings, the columns of its
                                    rows, and how rows score
table.py, view.py                   documents in shards, their changes, and the states that searches read
groups.py, headings.py, words.py, vectors.py, context.py, bm25.py, ranking.py, faiss_rows.py   the columns of
                                    rows, and what is computed with them
folder.py, settings.py              the folder of a saved index: lock, manifest, files
export.py                           vectors for stores of the frameworks
databases/                          the same search over rows in PostgreSQL
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
