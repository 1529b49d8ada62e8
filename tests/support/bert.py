"""Small BERTs with random weights, in folders."""

from pathlib import Path
from typing import Any


def saved_bert(folder: Path, words: list[str], kind: str = "BertModel", **changes: Any) -> Path:
    """Save a BERT that knows these words. kind: its class in transformers. changes: of its config."""
    import torch
    import transformers

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 24}
    config = transformers.BertConfig(
        vocab_size=len(pieces), max_position_embeddings=32, **{**sizes, **changes}
    )
    getattr(transformers, kind)(config).save_pretrained(folder)
    tokenizer: Any = transformers.BertTokenizerFast(str(folder / "vocab.txt"))  # type: ignore[attr-defined]
    tokenizer.save_pretrained(folder)
    return folder


def saved_encoder(folder: Path, words: list[str], pooling: str = "mean", **changes: Any) -> Path:
    """Save an encoder with such a BERT, as sentence-transformers saves it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    bert = saved_bert(folder / "bert", words, **changes)
    modules = [Transformer(str(bert), max_seq_length=20), Pooling(16, pooling_mode=pooling), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"
