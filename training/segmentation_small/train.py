"""Train the packaged segmentation model `small`, with `precise train`.

    python -m training.segmentation_small.train DATA FIRST
    python -m training.segmentation_small.train DATA SECOND --start FIRST --headings 0.5
    python -m training.segmentation_small.train DATA OUT --start SECOND --headings 0.1

DATA is the folder of the training files. The first step trains on text without headings, the second goes on
with the headings of half of the documents and with text joined from several documents, the third with the
headings of a tenth, so that sections are found where no heading shows them. The card is
docs/models.md.
"""

import argparse
import subprocess
from pathlib import Path

FILES = (
    "train_docs_cpp",
    "train_docs_d2l",
    "train_docs_eips",
    "train_docs_freshwiki",
    "train_docs_multilingual",
    "train_docs_opensource-guide",
    "train_docs_openstax",
    "train_docs_opentelemetry",
    "train_docs_owasp-cheatsheets",
    "train_docs_owasp-wstg",
    "train_docs_peps",
    "train_docs_powershell",
    "train_docs_rust-book",
    "train_docs_rust-reference",
    "train_docs_rust-rfcs",
    "train_docs_speeches",
    "train_docs_standardebooks",
    "train_docs_wikipedia",
    "train_docs_wikitext2",
    "train_seg_wiki300",
    "train_qa_docs_fairytaleqa",
    "train_qa_docs_qmsum",
)
"""Training files, without Brown, Choi and RGB, whose licences forbid commercial use."""

FURTHER = {"0.5": ("--epochs", "3", "--splice", "0.2"), "0.1": ("--epochs", "2", "--splice", "0.15")}
"""Settings of the second step and of the third, by their share of documents with headings."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.segmentation_small.train", description=__doc__.splitlines()[0]
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of the training files")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    parser.add_argument("--start", type=Path, metavar="MODEL", help="a further step, from this model")
    parser.add_argument("--headings", choices=FURTHER, help="share of the documents with headings, in it")
    args = parser.parse_args()
    files = [f"{name}.jsonl.gz" for name in FILES]
    options = ["--encoder", "all-MiniLM-L6-v2", "--epochs", "4", "--headings", "0"]
    if args.start:
        options = ["--start", str(args.start.resolve()), "--headings", args.headings or "0.5"]
        options += [*FURTHER[args.headings or "0.5"], "--learning-rate", "0.001"]
    options += ["--out", str(args.out.resolve()), "--seed", "0"]
    subprocess.run(["precise", "train", *files, *options], cwd=args.data, check=True)


if __name__ == "__main__":
    main()
