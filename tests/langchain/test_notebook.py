from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_the_notebook_runs_and_draws():
    """Run the notebook as it is but for a cheaper encoder."""
    notebook = nbformat.read(EXAMPLES / "score_curves.ipynb", as_version=4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")

    for cell in notebook.cells:
        cell.source = cell.source.replace(
            "from_documents(documents", "from_documents(documents, encoder=HashEncoder()"
        )
    notebook.cells.insert(0, nbformat.v4.new_code_cell("from precise_rag.testing import HashEncoder"))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}).execute()

    outputs = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in data for data in outputs) == 3
    assert "<html" in outputs[-1]["text/html"].lower()
