"""Small BERTs with random weights, in folders."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.encoders import bert, onnx_graph
from precise_rag.encoders.bert import bert_weights
from precise_rag.encoders.int8_layers import float32_linear
from precise_rag.encoders.reading import reading_of


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


def write_onnx(source: Path, folder: Path, output: str = "last_hidden_state", inputs: str = "") -> None:
    """Write onnx/model.onnx of the BERT in another folder, which reads rows of tokens, as exporters do.

    output: the states of all tokens, the first of each row as "sentence_embedding", or its class as "logits".
    inputs: what the network asks for; default: ids, mask and types. Those after these have no effect.
    """
    config, weights = reading_of(source, "").config, dequantized(bert_weights(source))
    graph = onnx_graph.Graph()
    names = (inputs or "input_ids attention_mask token_type_ids").split()
    ids, mask, *others = (graph.input(name, "int64", "b", "s") for name in names)
    zero, one = (graph.weight(f"number{n}", np.array(n, dtype=np.int64)) for n in range(2))
    sizes = (1,), (-1,), (config["hidden_size"],), (-1, config["hidden_size"])
    first, flat, width, vectors = (graph.weight(f"sizes{size}", np.array(size)) for size in sizes)
    shape, every = graph.op("Shape", ids), graph.op("Range", zero, graph.op("Size", ids), one)
    values = {
        "ids": graph.op("Reshape", ids, flat),
        "places": graph.op("Mod", every, graph.op("Gather", shape, one)),
        "kinds": graph.op("Reshape", others[0], flat) if others else graph.op("Mul", every, zero),
        "rows": graph.op("Reshape", every, shape),
        "packed": every,
        "lengths": graph.op("Cast", graph.op("ReduceSum", mask, first, keepdims=0), to=6),
    }
    for name, value in values.items():
        node = zip((1, 2, 4), (value, name, "Identity"), strict=True)
        graph._nodes.append(b"".join(onnx_graph._field(*part) for part in node))

    def layer(x: str, name: str) -> str:
        given = (graph.weight(n, weights[n]) for n in (f"{name}.weight", f"{name}.bias"))
        return graph.op("Gemm", x, *given, transB=1)

    network: Any = SimpleNamespace(config=config)
    with patch.object(bert, "Graph", lambda: graph), patch.object(graph, "input"):
        bert.BertNetwork._graph(network, weights, float32_linear)
    graph._outputs.clear()
    found = graph.op("Reshape", "states", graph.op("Concat", shape, width, axis=0))
    if output != "last_hidden_state":
        found = graph.op("Reshape", graph.op("Gather", found, zero, axis=1), vectors)
    if output == "logits":
        found = layer(graph.op("Tanh", layer(found, "pooler.dense")), "classifier")
    graph.output(output, found, *"bsw" if output == "last_hidden_state" else "bw")
    (folder / "onnx").mkdir(exist_ok=True)
    with patch.object(onnx_graph, "_SMALL", 2**31):  # weights are in the file itself
        (folder / "onnx" / "model.onnx").write_bytes(graph._model())
