"""SAGE, Figure 7: time and money of cutting a document, against a language model and against indexing.

    python -m benchmarks.papers.sage_segmentation --data DIR

What differs from the paper: the CPU of this machine for a rented RTX 3090; FairytaleQA for NarrativeQA;
GPT-4 was not asked: its time and price are the paper's own (section I: 8 hours and 90 dollars for a million
tokens), and a second of ours costs what a second of the paper's server does (5.3 dollars a day). Three
documents of each set. Times are CPU times on one thread, models loaded, nothing cached; the rest of
indexing is encoding the chunks. Table X, the features of the head: benchmarks.segmentation.ablation.
"""

from typing import Any

import numpy as np

from benchmarks.record import add_encoder, parse_arguments, save_rows
from benchmarks.timing import timed
from precise_rag.encoders import load_encoder
from precise_rag.evaluation import load_development_set
from precise_rag.protocols import Encoder
from precise_rag.segmentation import Segmenter

MODELS = ("small", "sage-minilm")
GPT_4_SECONDS, GPT_4_DOLLARS = 8 * 3600 / 1e6, 90 / 1e6
"""For one token (SAGE, section I)."""
SERVER_DOLLARS = 5.3 / 86_400
"""For one second (SAGE, section VII-F)."""
PAPER = {"quality": (90.71, 99.69), "fairytaleqa": (89.43, 99.65), "qasper": (91.49, 99.72)}
"""Percent of GPT-4's time and money saved."""
N_DOCUMENTS = 3


def main() -> None:
    parser = parse_arguments(__spec__.name, __doc__, ",".join(PAPER))
    add_encoder(parser)
    args = parser.parse_args()
    encoder = load_encoder(args.encoder, device="cpu")
    rows = [
        measure(name, model, encoder, args.data, args.seed)
        for name in args.sets.split(",")
        for model in MODELS
    ]
    title = "SAGE, Figure 7: what segmentation costs"
    also = "The paper's segmentation reads 725 tokens a second (Table VIII)."
    place = "segmentation-cost"
    save_rows(__spec__.name, args, place, title, rows, doc=__doc__, form=".2f", also=also)


def measure(name: str, model: str, encoder: Encoder, folder: str | None, seed: int) -> dict[str, Any]:
    """Seconds, tokens, speed, share of indexing, and time and money saved."""
    documents = load_development_set(name, folder).documents
    drawn = np.random.default_rng(seed).permutation(len(documents))[:N_DOCUMENTS].tolist()
    texts = [documents[row].text for row in drawn]
    segmenter = Segmenter.from_pretrained(model, device="cpu")
    segmenter.segment(texts[0][:3000])
    encoder.encode(["warm up"])
    tokens = int(encoder.count_tokens(texts).sum())
    _, cutting, chunks = timed(lambda: [chunk.text for text in texts for chunk in segmenter.segment(text)])
    encoding = timed(lambda: encoder.encode(chunks)).cpu
    time_saved, money_saved = PAPER.get(name, ("", ""))
    return {
        "set, model": f"{name}, {model}",
        "tokens": tokens,
        "seconds": cutting,
        "tokens/s": round(tokens / cutting),
        "share of indexing, %": round(100 * cutting / (cutting + encoding)),
        "time saved, %": 100 * (1 - cutting / (tokens * GPT_4_SECONDS)),
        "paper: time": time_saved,
        "money saved, %": f"{100 * (1 - cutting * SERVER_DOLLARS / (tokens * GPT_4_DOLLARS)):.3f}",
        "paper: money": money_saved,
    }


if __name__ == "__main__":
    main()
