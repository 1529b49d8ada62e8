"""Small BERTs with random weights, in folders."""

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors


def saved_bert(folder: Path, words: list[str], kind: str = "BertModel", **changes: Any) -> Path:
    """Save a BERT that knows these words. kind: its class in transformers. changes: of its config.

    If a word begins with SentencePiece's mark, the tokenizer is like that of XLM-R: long words are likely.
    """
    import torch
    import transformers

    is_unigram = any(word.startswith("\u2581") for word in words)
    special = "<s> <pad> </s> <unk>" if is_unigram else "[PAD] [UNK] [CLS] [SEP] [MASK]"
    pieces = [*special.split(), *words]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 24}
    config = transformers.BertConfig(
        vocab_size=len(pieces), max_position_embeddings=32, **{**sizes, **changes}
    )
    getattr(transformers, kind)(config).save_pretrained(folder)
    if is_unigram:
        made = Tokenizer(models.Unigram([(piece, len(piece) - 20.0) for piece in pieces], unk_id=3))
        made.normalizer, made.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
        ends = [("<s>", 0), ("</s>", 2)]
        made.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=ends)
        tokenizer: Any = transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>")
    else:
        tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))  # type: ignore[attr-defined]
    tokenizer.save_pretrained(folder)
    return folder


def saved_encoder(folder: Path, words: list[str], pooling: str = "mean", prompts: Any = None) -> Path:
    """Save an encoder with such a BERT, as sentence-transformers saves it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    bert = saved_bert(folder / "bert", words)
    modules = [Transformer(str(bert), max_seq_length=20), Pooling(16, pooling_mode=pooling), Normalize()]
    SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"
