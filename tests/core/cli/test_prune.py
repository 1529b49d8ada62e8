import io
import json
from types import SimpleNamespace

import pytest

from support.tool_results import LOG

QUESTION = "Which disk is full?"


@pytest.mark.parametrize("name", ["", "worker.log", "worker.jsonl"])
def test_a_file_or_what_a_command_prints_is_cut(name, precise, tmp_path, monkeypatch):
    lines = [json.dumps({"id": 1, "text": "job", "said": line}) for line in LOG.split("\n")]
    given = ("\n".join(lines) if "json" in name else LOG).encode() + b"\xff" * (not name)
    (tmp_path / (name or "piped")).write_bytes(given)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(given)))
    file = [tmp_path / name] if name else []
    code, out, err = precise("prune", QUESTION, *file, "--max-tokens", "100")
    assert code == 0
    assert "/dev/sdb1 is full" in out
    assert err.startswith("precise: ")
    n_left, _, n_before = err.split()[1:4]
    assert int(n_left) <= 100 < int(n_before)
    code, out, err = precise("prune", "What clears the screen?", *file, "--max-tokens", "3")
    assert (code, out) == (1, "")
    assert "max_tokens must be at least 32" in err
