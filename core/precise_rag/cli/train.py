"""`precise train PATH…`: train a segmentation model on documents with paragraphs and sections."""

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from precise_rag._extras import require
from precise_rag.cli.output import check_writable, print_json, show, warn
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.segmentation.segmenter import model_folder
from precise_rag.segmentation.training.labelled_documents import read_labelled

_FINE_TUNING_BATCH = 256
"""Sentences per step with --fine-tune: the encoder's activations of all of them are in memory at once."""
_FURTHER_RATE = 5e-4
"""Learning rate with which a trained model goes on."""
_HEADINGS = 0.5
"""Share of the documents whose headings are among the sentences."""
_FEW_DOCUMENTS, _HELD_OUT_OF_FEW = 200, 0.2
"""Of fewer documents a larger share is held out: two or three say little about which epoch is best."""


def run(args: argparse.Namespace) -> int:
    """Train the model, save it, and print its results on the held-out documents."""
    require("torch", extra="torch")
    from precise_rag.segmentation.networks import SageConfig
    from precise_rag.segmentation.training.fitting import TrainingSettings
    from precise_rag.segmentation.training.train import train_sage, train_small

    names = ("epochs", "batch_size", "learning_rate", "loss", "seed")
    chosen = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    documents = list(read_labelled(*args.paths, headings=_HEADINGS))
    if not documents:
        raise InputError("there are no documents to train on; name files or folders with paragraphs")
    start = args.start or ("none" if args.encoder or args.family == "sage" else "small")
    if start != "none" and (args.encoder or args.family == "sage"):
        raise InputError(
            f"--start {start} goes on from a model of the family small, which has its own vectors; "
            "leave out --family sage and --encoder, or pass --start none"
        )
    defaults: dict[str, float] = {"batch_size": _FINE_TUNING_BATCH} if args.fine_tune else {}
    if start != "none":
        defaults["learning_rate"] = _FURTHER_RATE
    if len(documents) < _FEW_DOCUMENTS:
        defaults["held_out"] = _HELD_OUT_OF_FEW
    settings = TrainingSettings(**defaults | chosen)
    sentences = sum(len(document.sentences) for document in documents)
    args.out.mkdir(parents=True, exist_ok=True)
    check_writable(args.out / "config.json")
    warn(f"{len(documents):,} documents, {sentences:,} sentences")
    name = args.encoder or (DEFAULT_ENCODER if args.family == "sage" else None)
    encoder = load_encoder(name, device=args.device) if name else None
    if args.family == "small":
        train: Any = partial(train_small, start=None if start == "none" else model_folder(start))
    else:
        assert encoder is not None
        config = SageConfig(dimension=encoder.dimension, context=not args.pair)
        train = partial(train_sage, config=config, fine_tune=args.fine_tune)
    report = train(documents, args.out, settings, encoder=encoder, device=args.device)
    if args.json:
        print_json(report)
    else:
        show(
            f"{args.out}: best epoch {report['epoch']}; area under the curve on held-out documents: "
            f"paragraph breaks {report['paragraph_auc']:.3f}, section breaks {report['section_auc']:.3f}"
        )
        if start != "none":
            show(_compared(report, start, args.out))
    return 0


def _compared(report: Mapping[str, Any], start: str, out: Path) -> str:
    """Which model to use, and why."""
    before, after = (f"{figures['loss']:.4f}" for figures in (report["start"], report))
    if report["epoch"] == 0:
        return (
            f"use {start}: no epoch was better on the held-out documents by more than chance (loss "
            f"{before}), so {out} is a copy of it; more documents may help"
        )
    return f"use {out}: its loss on the held-out documents is {after}, that of {start} {before}"
