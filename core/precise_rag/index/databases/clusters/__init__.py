"""Collections on servers that have no transactions, such as Qdrant.

A document has a head, one record with the name of its present version, and rows that name their version.

    write    rows of a new version, then the head, then the rows of the old version are deleted
    delete   the head, then the rows
    search   rows, then the heads of the documents that were found; rows of other versions are left out, and
             the search is repeated if one of the versions may not have been complete when it began

A head is one record, so it is the old one or the new one. What a crash leaves are rows of which no head
knows: no search returns them, and `optimize` deletes them.

store.py    what a server must do, and the values that pass between
engine.py   ClusterEngine: the order of writes
view.py     ClusterView: the order of reads
"""

from precise_rag.index.databases.clusters.engine import ClusterEngine
from precise_rag.index.databases.clusters.store import Head, Hit, Row, Store

__all__ = ["ClusterEngine", "Head", "Hit", "Row", "Store"]
