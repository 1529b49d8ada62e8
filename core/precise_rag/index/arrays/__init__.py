"""Array code shared by the indexes: rows, vectors, words, passages, contexts and score fusion."""
