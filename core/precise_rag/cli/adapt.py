"""`precise adapt INDEX`: fit the reranker to the collection of a saved index, by questions about it."""

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from precise_rag.cli.given_documents import path_argument
from precise_rag.cli.output import Subparsers, check_writable, is_terminal, print_json, show, warn
from precise_rag.cli.saved_index import add_index_options, add_reranker_option, open_index
from precise_rag.errors import InputError
from precise_rag.evaluation import Adapted, Question, adapt, own_questions, read_questions
from precise_rag.evaluation.adapting import FEWEST_QUESTIONS
from precise_rag.index import DatabaseIndex, DocumentIndex, HybridIndex
from precise_rag.index.databases import is_database

_MOST_QUESTIONS = 300
"""Questions of the documents' own that are asked."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "adapt",
        help="fit the reranker to your documents, by questions about them",
        description="Fit the reranker's probabilities to the documents of an index, and its order where "
        f"the questions say so; {FEWEST_QUESTIONS} are the least. Questions held out tell what is "
        "gained; if that is nothing, everything stays as it is. What is learned is saved with the index, and "
        "`precise ask` uses it.",
    )
    add_index_options(parser)
    parser.add_argument(
        "--questions",
        type=path_argument,
        metavar="FILE",
        help=".jsonl, .jsonl.gz or .csv file: question, and evidence as a quotation or as offsets, as for "
        "`precise eval` (default: questions that the documents ask themselves in their headings)",
    )
    add_reranker_option(parser)
    parser.add_argument(
        "--out",
        type=path_argument,
        metavar="FILE",
        help="write what is learned to this .json file, for reranker=FILE in Python and `precise ask "
        "--reranker FILE`; needed for a database (default: save it with the index)",
    )
    parser.add_argument(
        "--forget", action="store_true", help="remove what was learned from the index, and do nothing else"
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Adapt, save what was learned, and tell what was gained."""
    in_database = is_database(args.index)
    if in_database and not args.out:
        raise InputError("a database keeps no adaptation; give a file: --out adapted.json")
    if args.out:
        if args.out.suffix != ".json":
            raise InputError(f"--out must end in .json, got {args.out}")
        check_writable(args.out)
    with nullcontext() if in_database or args.out else DocumentIndex.lock(args.index):
        index = open_index(args)
        if args.forget:
            return _forget(index, args)
        asked, searched = _questions(index, args)
        adapted = adapt(searched, asked, reranker=args.reranker, show_progress=is_terminal("stderr"))
        if adapted.adaptation is not None:
            if args.out:
                adapted.adaptation.save(args.out)
            else:
                assert isinstance(index, DocumentIndex)
                index.adaptation = adapted.adaptation
                index.save(args.index)
    _tell(adapted, args)
    return 0


def _questions(
    index: DocumentIndex | DatabaseIndex, args: argparse.Namespace
) -> tuple[Sequence[Question], DocumentIndex | DatabaseIndex]:
    """The questions of the file, or the documents' own, and what is searched for them."""
    documents = (index.document(doc_id) for doc_id in index.document_ids)
    if args.questions:
        return read_questions(args.questions, documents), index
    made = own_questions(documents, most=_MOST_QUESTIONS)
    if len(made.questions) < FEWEST_QUESTIONS:
        raise InputError(
            f"{FEWEST_QUESTIONS} questions are needed, and only {len(made.questions)} headings of the "
            "documents can be asked for; give your own questions with --questions FILE"
        )
    warn(f"{len(made.questions)} headings of {len(made.documents)} documents are asked for")
    return made.questions, HybridIndex.build(made.documents, index.encoder)


def _forget(index: DocumentIndex | DatabaseIndex, args: argparse.Namespace) -> int:
    if args.out or not isinstance(index, DocumentIndex):
        raise InputError("--forget changes a folder; delete the file of an adaptation yourself")
    known, index.adaptation = index.adaptation, None
    if known is not None:
        index.save(args.index)
    show("forgotten" if known else "the index has no adaptation")
    return 0


def _tell(adapted: Adapted, args: argparse.Namespace) -> None:
    place: Path = args.out or args.index
    if args.json:
        print_json(
            {
                "adapted": adapted.adaptation is not None,
                "place": str(place) if adapted.adaptation else None,
                "says": adapted.says,
                "questions": adapted.n_questions,
                "loss": adapted.loss._asdict(),
                "evidence": adapted.evidence._asdict(),
                "evidence_before": adapted.before,
                "evidence_after": adapted.after,
                "weights": dict(adapted.adaptation.weights) if adapted.adaptation else None,
            }
        )
        return
    show(adapted.says)
    if adapted.adaptation is not None:
        show(f"saved in {place}")
