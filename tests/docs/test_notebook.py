"""The notebook runs as it is published, and its pictures show what its text says."""

from pathlib import Path
from typing import Any

import pytest

from precise_rag import Segmenter
from precise_rag.documents import read_documents

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parents[2] / "examples"


def show(outputs: list[Any], kind: str) -> list[str]:
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


@pytest.mark.slow
def test_the_notebook_runs_and_shows() -> None:
    notebook = nbformat.read(EXAMPLES / "score_curves.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}).execute()

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert len(show(outputs, "image/png")) == 2
    segmentation, selection, trace = show(outputs, "text/html")
    assert segmentation.startswith("<table>")
    assert selection.startswith("<table>")
    assert trace.startswith("<iframe sandbox")
    assert "is above 0.3 ×" in selection or "sharp drop" in selection
    assert "<style" not in segmentation + selection + trace, "nothing changes the style of the notebook"


def test_the_page_is_cut_as_the_text_says() -> None:
    (page,) = (d for d in read_documents(EXAMPLES / "handbook") if d.id == "crossing.md")
    segmenter = Segmenter.from_pretrained("small", max_tokens=80)
    found = segmenter.explain(page)
    below = [cut for cut in found.cuts.tolist() if found.scores[cut] < segmenter.options.threshold]
    assert below == [6], "after the seventh sentence"
    assert found.reasons == ("paragraph", "topic", "paragraph")
