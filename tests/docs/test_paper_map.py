"""The paper map names files that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_path_of_the_paper_map_exists():
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([a-z_]+(?:/[a-z_]*)*(?:\.py|/))`", text.partition("\n## ")[2])
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / "core" / "precise_rag" / path).exists()] == []
