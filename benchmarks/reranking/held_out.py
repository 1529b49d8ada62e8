"""Candidate lists of questions and documents that no reranker was trained on, and their results."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.questions import UNSEEN, unseen
from benchmarks.tables import table
from precise_rag.rerank import PackagedReranker
from training.candidate_lists import (
    HALVED,
    KINDS,
    CandidateList,
    cached_encoder,
    candidate_lists,
    read_set,
)

SAMPLES = {"squad": 300, "fairytaleqa": 300}
"""How many questions of the large sets are measured on."""


def new_parser(module: str, doc: str) -> ArgumentParser:
    """Parser with the folders and the kinds of lists."""
    parser = record.new_parser(module, doc)
    parser.add_argument("--vectors", help="file that keeps sentence vectors")
    parser.add_argument("--cache", type=Path, help="folder that keeps candidate lists")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    return parser


def held_out(options: Namespace) -> Iterator[tuple[str, str, list[CandidateList]]]:
    """(set, kind, lists) of the unseen sets, and of the halves kept out of training."""
    encoder = cached_encoder(options.vectors)
    for name in (*UNSEEN, *HALVED):
        dataset = unseen(read_set(f"dev/{name}", options.data), name)
        dataset = replace(dataset.sample(SAMPLES.get(name), seed=1), name=f"held-out/{name}")
        for kind in options.kinds:
            yield name, kind, candidate_lists(dataset, kind, encoder, options.cache)


def save(
    module: str, name: str, title: str, options: Namespace, rows: list[dict[str, Any]], **more: Any
) -> None:
    """Write the rows as a table and as JSON, with `more` beside them."""
    made = record.made(module, options, reranker=PackagedReranker().weights_sha256)
    record.save("reranking", name, made, f"# {title}\n\n{table(rows, '.3f')}", {"rows": rows, **more})
