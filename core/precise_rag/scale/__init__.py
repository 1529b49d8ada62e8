"""Beyond one machine: sentences and their vectors by Ray Data, into Parquet."""

from precise_rag.scale.parquet import Progress as Progress
from precise_rag.scale.parquet import embed_to_parquet as embed_to_parquet
