"""The model card: training data, settings and held-out figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from precise_rag.segmentation.training.fitting import TrainingSettings
from precise_rag.segmentation.training.labelled_documents import LabelledDocument


def write_card(
    folder: Path,
    family: str,
    documents: Sequence[LabelledDocument],
    report: dict[str, Any],
    settings: TrainingSettings,
    command: str,
) -> None:
    """Write the model card, `folder/README.md`.

    folder: with the saved model. family: "small" or "sage". documents: the training data. report:
    held-out figures from `fit`. settings: of the run. command: that started it; empty if none did.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    size = (folder / "model.safetensors").stat().st_size
    lines = [
        f"# Segmentation model of the family `{family}`",
        "",
        f"- weights: {size / 1e6:.2f} MB, sha256 `{config['weights_sha256']}`",
        f"- command: `{command}`" if command else "- command: trained through the Python interface",
        f"- settings: `{json.dumps(asdict(settings))}`",
        f"- best epoch: {report['epoch']}, held-out loss {report['loss']:.4f}",
        "",
        "## Training data",
        "",
        "| domain | licence | documents | sentences |",
        "|---|---|---:|---:|",
        *_data_rows(documents),
        "",
        f"## Held-out documents ({settings.held_out:.0%} of all, by a hash of their ids)",
        "",
        "Area under the ROC curve for the gaps between sentences.",
        "",
        "| domain | sentences | paragraph breaks | section breaks |",
        "|---|---:|---:|---:|",
        *(_figures_row(name, figures) for name, figures in report["domains"].items()),
        _figures_row("all", report),
        "",
    ]
    (folder / "README.md").write_text("\n".join(lines), encoding="utf-8")


def _data_rows(documents: Sequence[LabelledDocument]) -> list[str]:
    counts: dict[tuple[str, str], list[int]] = {}
    for document in documents:
        row = counts.setdefault((document.domain, document.license or "not stated"), [0, 0])
        row[0] += 1
        row[1] += len(document.sentences)
    return [
        f"| {domain} | {licence} | {n:,} | {m:,} |" for (domain, licence), (n, m) in sorted(counts.items())
    ]


def _figures_row(name: str, figures: dict[str, Any]) -> str:
    areas = (figures["paragraph_auc"], figures["section_auc"])
    cells = " | ".join("–" if area != area else f"{area:.3f}" for area in areas)
    return f"| {name} | {figures['sentences']:,} | {cells} |"
