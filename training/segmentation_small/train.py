"""Train the packaged segmentation model `small`, with `precise train`.

    python -m training.segmentation_small.train DATA OUT

DATA is the folder of the training files. The card is docs/models/segmentation-small.md.
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


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.segmentation_small.train", description=__doc__.splitlines()[0]
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of the training files")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    args = parser.parse_args()
    files = [f"{name}.jsonl.gz" for name in FILES]
    options = ["--encoder", "all-MiniLM-L6-v2", "--out", str(args.out.resolve()), "--epochs", "4"]
    subprocess.run(["precise", "train", *files, *options, "--seed", "0"], cwd=args.data, check=True)


if __name__ == "__main__":
    main()
