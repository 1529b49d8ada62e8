"""`precise demo [DIR…]`: index documents and ask questions, without an API key or a download."""

import argparse
from collections.abc import Iterator, Sequence
from pydoc_data.topics import topics

import numpy as np

from precise_rag.cli.output import (
    Subparsers,
    count_kept_tokens,
    is_terminal,
    print_json,
    print_selection,
    selection_record,
    show,
)
from precise_rag.cli.reading import Problems, add_reading_options, path_argument, read_given
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.pipeline import PreciseRAG
from precise_rag.protocols import Encoder
from precise_rag.sentences import split_sentences
from precise_rag.types import Document

QUESTIONS = (
    "What happens to a saved exception if the finally clause executes a return statement?",
    "Which names does a class block see from the enclosing function?",
    "How does Python decide which of two operands' methods is called for a binary operator?",
    "What value does the pow operator give for an int raised to a negative power?",
)
"""Questions about the Python language reference, the default documents."""

CHUNK_TOKENS = 200
TOP_K = 5
"""What the demo compares with: the best five chunks of 200 tokens by cosine."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "demo",
        help="try it: index documentation and ask questions about it",
        description="Index documents, ask questions about them, and compare the tokens sent with those of "
        f"the best {TOP_K} chunks of {CHUNK_TOKENS} tokens. Needs no API key and no download.",
    )
    parser.add_argument(
        "paths",
        type=path_argument,
        nargs="*",
        metavar="DIR",
        help="folders, or text, Markdown or JSON Lines files (default: the Python language reference)",
    )
    parser.add_argument(
        "--question",
        action="append",
        metavar="TEXT",
        help="a question to ask; can be repeated (default: prepared ones, or the titles of your documents)",
    )
    add_reading_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per question")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Index the documents, ask the questions, and show each selection and how many tokens it saves."""
    documents, problems = read_given(args) if args.paths else (list(_language_reference()), Problems())
    if not any(document.text.strip() for document in documents):
        if problems.show():
            return 1
        raise InputError("every document is empty, so there is nothing to ask about")
    questions = args.question or (QUESTIONS if not args.paths else _titles(documents))
    if not args.json:
        show(f"{len(documents)} documents, {sum(len(document.text) for document in documents):,} characters")

    encoder = load_encoder(DEFAULT_ENCODER)
    rag = PreciseRAG.from_documents(
        documents,
        encoder=encoder,
        index_options={"passages": "segments"},
        show_progress=is_terminal("stderr"),
    )
    fixed = _FixedChunks(documents, encoder)

    sent = sent_fixed = 0
    for question in questions:
        selection = rag.retrieve(question)
        tokens, tokens_fixed = count_kept_tokens(selection), fixed.tokens_sent(question)
        sent += tokens
        sent_fixed += tokens_fixed
        if args.json:
            record = {"question": question, "tokens": tokens, "tokens_fixed": tokens_fixed}
            print_json({**record, "candidates": selection_record(selection)})
            continue
        show(f"\n▸ {question}")
        print_selection(selection)
        show(f"  sent: {tokens} tokens; {TOP_K} × {CHUNK_TOKENS}-token chunks by cosine: {tokens_fixed}")
    if not args.json:
        show(
            f"\n{len(questions)} questions: {sent} tokens sent, fixed top-{TOP_K} would send {sent_fixed} "
            f"({1 - sent / sent_fixed:.0%} fewer)"
        )
    return problems.show()


def _language_reference() -> Iterator[Document]:
    """The pages of the Python language reference that come with the interpreter."""
    for name, text in sorted(topics.items()):
        yield Document(name, text, {"source": f"pydoc_data.topics: {name}"})


def _titles(documents: Sequence[Document]) -> list[str]:
    """Titles or first lines of some documents, evenly spaced, to use as questions."""
    filled = [document for document in documents if document.text.strip()]
    chosen = filled[:: max(1, len(filled) // len(QUESTIONS))][: len(QUESTIONS)]
    return [str(document.metadata.get("title") or document.text.split("\n")[0])[:120] for document in chosen]


class _FixedChunks:
    """The usual retrieval: whole sentences packed into chunks of a fixed size, the best five by cosine."""

    def __init__(self, documents: Sequence[Document], encoder: Encoder) -> None:
        chunks = [chunk for document in documents for chunk in _pack(document.text, encoder)]
        self._encoder = encoder
        self._n_tokens = encoder.count_tokens(chunks)
        self._vectors = encoder.encode(chunks, show_progress=is_terminal("stderr"))

    def tokens_sent(self, question: str) -> int:
        """Return the tokens of the best chunks for `question`."""
        similarity = self._vectors @ self._encoder.encode_queries([question])[0]
        return int(self._n_tokens[np.argsort(-similarity)[:TOP_K]].sum())


def _pack(text: str, encoder: Encoder) -> Iterator[str]:
    spans = split_sentences(text)
    lengths = encoder.count_tokens([text[start:end] for start, end in spans])
    first, tokens = 0, 0
    for i, (span, length) in enumerate(zip(spans, lengths.tolist(), strict=True)):
        if tokens and tokens + length > CHUNK_TOKENS:
            yield text[spans[first].start : span.start]
            first, tokens = i, 0
        tokens += length
    if spans:
        yield text[spans[first].start :]
