"""Small BERTs with random weights, in folders."""

import warnings
from pathlib import Path
from typing import Any

import pytest
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


def write_onnx(source: Path, folder: Path, output: str = "last_hidden_state") -> None:
    """Write onnx/model.onnx of the BERT in another folder, as torch exports it.

    output: the states of all tokens, the first of each row as "sentence_embedding", or its class as "logits".
    """
    import torch
    import transformers

    pytest.importorskip("onnx")
    kind = "AutoModelForSequenceClassification" if output == "logits" else "AutoModel"
    network = getattr(transformers, kind).from_pretrained(source, attn_implementation="eager").eval()

    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, ids: torch.Tensor, mask: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
            found = self.network(input_ids=ids, attention_mask=mask, token_type_ids=kinds)[0]
            return found[:, 0] if output == "sentence_embedding" else found

    names = ["input_ids", "attention_mask", "token_type_ids"]
    (folder / "onnx").mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the newer exporter needs onnxscript
        torch.onnx.export(
            Exported(),
            (torch.ones(2, 3, dtype=torch.int64),) * 3,
            str(folder / "onnx" / "model.onnx"),
            input_names=names,
            output_names=[output],
            dynamic_axes={name: {0: "b", 1: "s"} for name in names},
            opset_version=17,
            dynamo=False,
        )
