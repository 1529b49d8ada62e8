"""`precise train`: a segmentation model from documents with paragraphs and sections."""

import argparse
import shlex
import sys
from pathlib import Path

from precise_rag._extras import require
from precise_rag.cli.output import Subparsers, print_json
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.segmentation.pretrained import PACKAGED
from precise_rag.segmentation.training.data import read_dataset, read_labelled

_FINE_TUNING_BATCH = 256
"""Sentences: each keeps what it passed through the encoder in memory until the step is over."""


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser("train", help="train a segmentation model on documents of your own")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="folders, .jsonl(.gz), .txt or .md files")
    parser.add_argument(
        "--dataset", help="a Hugging Face dataset with a text column, NAME or NAME:CONFIGURATION"
    )
    parser.add_argument(
        "--limit", type=int, default=10_000, help="documents of the dataset (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the model; a run found there is resumed"
    )
    parser.add_argument("--family", choices=("small", "sage"), default="small", help="default: %(default)s")
    parser.add_argument(
        "--encoder",
        help=f"sage: the sentence encoder (default: {DEFAULT_ENCODER}); small: what token vectors start from",
    )
    parser.add_argument("--fine-tune", action="store_true", help="sage: train the encoder as well")
    parser.add_argument(
        "--pair", action="store_true", help="sage: the paper's head, which sees one pair of sentences"
    )
    parser.add_argument(
        "--words",
        action="store_const",
        const=PACKAGED["small"],
        help="sage: add what the packaged small model says, weighed on the held-out documents; "
        "for the documents and --held-out that it was trained with, or others altogether",
    )
    parser.add_argument(
        "--splice", type=float, help="share of the text joined from pieces of several documents (default: 0)"
    )
    parser.add_argument(
        "--vocabulary", type=int, default=24_000, help="small: word pieces (default: %(default)s)"
    )
    parser.add_argument("--epochs", type=int, help="passes over the documents")
    parser.add_argument(
        "--batch-size", type=int, help="sentences in a step (default: 2048; 256 with --fine-tune)"
    )
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument(
        "--loss", choices=("bce", "mse"), help="cross-entropy, or the squared error of the paper"
    )
    parser.add_argument("--held-out", type=float, help="share of the documents kept for early stopping")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--device", help="cpu, cuda, … (default: the best there is)")
    parser.add_argument("--json", action="store_true", help="the held-out figures as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train, write the model and its card, and print what it reached on held-out documents."""
    require("torch", extra="torch")
    from precise_rag.segmentation.training.fitting import TrainingSettings
    from precise_rag.segmentation.training.networks import SageConfig
    from precise_rag.segmentation.training.train import train_sage, train_small

    names = ("epochs", "batch_size", "learning_rate", "loss", "held_out", "splice", "seed")
    chosen = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    settings = TrainingSettings(**({"batch_size": _FINE_TUNING_BATCH} if args.fine_tune else {}) | chosen)
    documents = list(read_labelled(*args.paths))
    if args.dataset:
        documents.extend(read_dataset(args.dataset, args.limit))
    if not documents:
        raise InputError(
            "nothing to train on: give files or folders with documents of paragraphs, or --dataset"
        )
    sentences = sum(len(document.sentences) for document in documents)
    print(f"{len(documents):,} documents, {sentences:,} sentences", file=sys.stderr)
    command = f"precise {shlex.join(sys.argv[1:])}"
    encoder = (
        load_encoder(args.encoder or DEFAULT_ENCODER, device=args.device) if _needs_encoder(args) else None
    )
    if args.family == "small":
        report = train_small(
            documents,
            args.out,
            settings,
            vocabulary_size=args.vocabulary,
            encoder=encoder,
            device=args.device,
            command=command,
        )
    else:
        assert encoder is not None
        report = train_sage(
            documents,
            args.out,
            settings,
            encoder=encoder,
            config=SageConfig(dimension=encoder.dimension, context=not args.pair),
            fine_tune=args.fine_tune,
            words=args.words,
            device=args.device,
            command=command,
        )
    if args.json:
        print_json(report)
    else:
        print(
            f"{args.out}: best epoch {report['epoch']}; held-out areas under the curve: paragraph breaks "
            f"{report['paragraph_auc']:.3f}, section breaks {report['section_auc']:.3f}; see README.md there"
        )
    return 0


def _needs_encoder(args: argparse.Namespace) -> bool:
    return args.family == "sage" or args.encoder is not None
