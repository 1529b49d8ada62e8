"""What the indexes share: documents and rows in arrays, vectors, words, passages, contexts and fusion."""
