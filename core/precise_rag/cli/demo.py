"""`precise demo [PATH…]`: index documents and ask questions, without an API key or a download."""

import argparse
import sys
from pydoc_data.topics import topics

from precise_rag._data import packaged_text
from precise_rag.cli.output import count_kept_tokens, is_terminal, shorten, show, show_problems, source_of
from precise_rag.context import context_passages
from precise_rag.documents import read_documents
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.index import DenseIndex
from precise_rag.pipeline import PreciseRAG
from precise_rag.tokens import candidate_tokens
from precise_rag.types import Document

QUESTIONS = packaged_text("cli/demo_questions.txt").splitlines()
_LONGEST_PAGE = 20_000
"""Characters; longer pages of the language reference repeat the others."""
_CHUNK_TOKENS, _TOP_K = 200, 5
"""What the demo compares with: the best five chunks of 200 tokens by cosine."""
_WIDTH = 80


def run(args: argparse.Namespace) -> int:
    """Index the documents, show one question in full, and compare all questions with stock retrieval."""
    problems: list[InputError] = []
    read = read_documents(*args.paths, exclude=args.exclude, on_error=problems.append)
    reference = ((name, text) for name, text in sorted(topics.items()) if len(text) < _LONGEST_PAGE)
    pages = (Document(name, text, {"source": name}) for name, text in reference)
    documents = list(read if args.paths else pages)
    filled = [document for document in documents if document.text.strip()]
    if not filled:
        if show_problems(problems):
            return 1
        raise InputError("every document is empty, so there is nothing to ask about")
    chosen = filled[:: max(1, len(filled) // len(QUESTIONS))][: len(QUESTIONS)]
    titles = [" ".join(str(one.metadata.get("title") or one.text).split()) for one in chosen]
    questions = args.question or ([shorten(title, 120) for title in titles] if args.paths else QUESTIONS)
    encoder = load_encoder(DEFAULT_ENCODER)
    rag = PreciseRAG.from_documents(documents, encoder=encoder, show_progress=is_terminal(sys.stderr))
    chunks = f"{_CHUNK_TOKENS} tokens"
    stock = DenseIndex.build(documents, encoder, chunks=chunks, show_progress=is_terminal(sys.stderr))
    show(f"{len(documents)} documents\n\n▸ {questions[0]}")
    selection = rag.retrieve(questions[0])
    for passage in (passages := context_passages(selection)):
        show(f"  [{passage.number}] {source_of(passage)}")
        for piece in passage.pieces:
            show(f"  {piece.score:8.2f}  {shorten(' '.join(piece.text.split()), _WIDTH)}")
    show(f"  {len(passages)} passages, {count_kept_tokens(selection)} tokens")
    show(f"\nTokens sent, and the stock way: the best {_TOP_K} chunks of {_CHUNK_TOKENS} tokens by cosine.")
    show(f"\n  {'':<62}{'precise-rag':>16}{f'{_TOP_K} × {chunks}':>20}")
    for question in questions:
        sent = count_kept_tokens(rag.retrieve(question))
        of_chunks = sum(map(candidate_tokens, stock.search(question, _TOP_K)))
        show(f"  {shorten(question, 60):<62}{sent:>16,}{of_chunks:>20,}")
    return show_problems(problems)
