import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from precise_rag.encoders import load_encoder
from precise_rag.errors import ModelError
from precise_rag.rerank import load_reranker
from precise_rag.types import Candidate
from support.bert import saved_bert, write_onnx

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def tiny_model(folder: Path, n_labels: int) -> Path:
    words = ["river", "bridge", "bread", "opens"]
    kind = "BertForSequenceClassification"
    return saved_bert(folder, words, kind, num_labels=n_labels, initializer_range=1.0)


TEXTS = ["bridge opens", "bread", "river bridge opens bread", "bread " * 40]
CANDIDATES = [Candidate("d", i, i + len(t), t, 0.0, "rank") for i, t in enumerate(TEXTS)]


@pytest.mark.parametrize("run", ["torch", "onnx"])
def test_scores_are_the_sigmoid_of_the_models_logit(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_model(tmp_path / "model", 1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, model_max_length=32)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    batch = tokenizer(["river bridge"] * 4, TEXTS, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        logits = network(**batch).logits[:, 0].numpy()
    if run == "onnx":
        write_onnx(folder, folder, "logits")
        (folder / "model.safetensors").unlink()
    monkeypatch.setattr("precise_rag.encoders.onnx.is_installed", lambda module: run == "torch")
    monkeypatch.setattr("precise_rag.encoders.onnx.runs_on_onnx", lambda device: run != "torch")
    reranker = load_reranker(folder, device="cpu")
    scores = reranker.score("river bridge", CANDIDATES)
    assert scores == pytest.approx(1 / (1 + np.exp(-logits)), abs=1e-5)
    assert reranker.score_scale == "probability"
    assert reranker.score("river", []).shape == (0,)
    if run == "onnx":
        with pytest.raises(ModelError, match="gives logits, so it is no encoder"):
            load_encoder(folder)


def test_what_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "three", 3)
    for device in ("cpu", "meta"):
        with pytest.raises(ModelError, match="must have one output, got 3"):
            load_reranker(folder, device=device).score("river", CANDIDATES)
    with pytest.raises(ModelError, match="cannot load the cross-encoder"):
        load_reranker(tmp_path / "nowhere", device="cpu").score("river", CANDIDATES)


def test_code_of_an_auto_map_does_not_run(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "model", 1)
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Evil: pass\n")
    config = json.loads((folder / "config.json").read_text())
    names = dict.fromkeys(("AutoConfig", "AutoModel", "AutoModelForSequenceClassification"), "evil.Evil")
    config |= {"model_type": "evil", "auto_map": names}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = {"auto_map": {"AutoTokenizer": ["evil.Evil", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ModelError, match="cannot load the cross-encoder"):
        load_reranker(folder, device="cpu").score("river", CANDIDATES)
    assert not (folder / "ran").exists()


def test_a_pickle_in_a_folder_does_not_run(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "model", 1)

    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return open, (str(folder / "ran"), "w")

    (folder / "model.safetensors").unlink()
    for write in (torch.save, lambda value, file: Path(file).write_bytes(pickle.dumps(value))):
        write({"weight": Evil()}, folder / "pytorch_model.bin")
        with pytest.raises(ModelError):
            load_reranker(folder, device="cpu").score("river", CANDIDATES)
        with pytest.raises(ModelError):
            load_encoder(folder, device="cpu").encode(["river"])
        assert not (folder / "ran").exists()
