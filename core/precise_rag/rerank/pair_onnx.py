"""The cascade's cross-encoder on ONNX Runtime: the network of `pair_network`, for the CPU."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.checkpoints.saved import Tensors
from precise_rag.encoders.bert import BertNetwork, Layout, bert_layer, means
from precise_rag.encoders.int8_layers import Linear, Norm, Precision, with_precision
from precise_rag.encoders.local import MINILM, batches_by_length, packaged_encoder
from precise_rag.encoders.onnx import SAMPLE, OnnxEncoder
from precise_rag.encoders.onnx_graph import Graph
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.rerank.pairs import PARTS, QUERY_TOKENS, Piece, TransformerConfig, tokens_of_pieces
from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import dots, unit_rows

_BATCH_TOKENS = 2_048


class OnnxPairScorer:
    """Scores pieces of text against a query with a trained network, on the CPU.

    config: sizes of the network. trained: its tensors that differ from MiniLM, by name. The lower layers are
    those of the encoder all-MiniLM-L6-v2; in float32 they are shared with it.
    precision: of the linear layers.
    """

    def __init__(self, config: TransformerConfig, trained: Tensors, precision: Precision = "int8") -> None:
        self._encoder = OnnxEncoder(packaged_encoder(MINILM)).once()
        self._n_apart = config.n_apart
        self._lower = self._encoder.lower_layers(config.n_apart, precision)
        self._upper = _UpperLayers(config, trained, self._lower, precision, self._sample)
        self._head, self._offset = trained["head.weight"][0], trained["head.bias"][0]
        self._last_query: tuple[str | None, FloatArray] = None, np.zeros((0, 0), dtype=np.float32)

    def logits(self, query: str, pieces: Sequence[Piece]) -> FloatArray:
        """Return (n,) logits, one per piece; of long queries and texts only the beginning is read."""
        logits = np.zeros(len(pieces), dtype=np.float32)
        ids, around = tokens_of_pieces(self._encoder.tokenizer, pieces)
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in ids], dtype=np.int64)])
        tokens = TokenIds(np.fromiter(chain.from_iterable(ids), dtype=np.int64), offsets)
        query_states = self._query_states(query)
        for rows in batches_by_length(tokens.lengths + len(query_states), _BATCH_TOKENS):
            batch, is_around = tokens.of(rows), np.concatenate([around[row] for row in rows])
            of_query, of_texts = self._upper.read(query_states, self._states(batch), batch.lengths, is_around)
            firsts = batch.offsets[:-1]
            a: FloatArray = of_query.mean(axis=1)
            b = means(of_texts[~is_around], np.add.reduceat(~is_around, firsts, dtype=np.int64))
            product = np.multiply(unit_rows(a), unit_rows(b))
            pair = [of_query[:, 0], of_texts[firsts], a, b, np.abs(a - b), product]
            logits[rows] = dots(np.concatenate(pair, axis=1), self._head) + self._offset
        return logits

    def _query_states(self, query: str) -> FloatArray:
        known, states = self._last_query
        if known != query:
            states = self._states(self._encoder.tokens([query]).cut(QUERY_TOKENS))
            self._last_query = query, states
        return states

    def _states(self, tokens: TokenIds) -> FloatArray:
        return self._lower.states(tokens, self._n_apart)

    def _sample(self) -> tuple[FloatArray, FloatArray]:
        query, text = (self._states(self._encoder.tokens([text])) for text in SAMPLE)
        return query, text


class _UpperLayers:
    """The layers that read a query and a candidate together."""

    def __init__(
        self,
        config: TransformerConfig,
        trained: Tensors,
        lower: BertNetwork,
        precision: Precision,
        sample: Callable[[], tuple[FloatArray, FloatArray]],
    ) -> None:
        self._sides = trained["sides"]

        def like_those_to_come() -> dict[str, Any]:
            query, candidate = sample()
            around = np.zeros(len(candidate), dtype=np.bool_)
            return self._inputs(query, candidate, np.array([len(candidate)]), around)[0]

        graph = with_precision(
            precision, lambda linear: self._graph(config, trained, lower, linear), like_those_to_come
        )
        self._session = graph.session(lower.threads, for_callers=precision == "int8")

    def _graph(
        self, config: TransformerConfig, trained: Tensors, lower: BertNetwork, linear: Linear
    ) -> Graph:
        graph = Graph()
        layout = Layout.of(graph)
        states = graph.input("states", "float32", "t", "width")
        other = graph.input("other", "float32", "one", "head", "s", "s")
        norm = lower.norms[config.n_apart]
        before = Norm(norm.scale, norm.shift + self._sides[1])
        for number in range(config.n_layers - config.n_apart):
            across = graph.weight(f"across{number}", trained["across"][number][None, :, None, None])
            weights = _bert_names(trained, f"together.{number}", str(number))
            bias = graph.op("Mul", other, across)
            states = bert_layer(
                graph, layout, weights, str(number), states, lower.settings, linear, before, bias
            )
            before = Norm(*(weights[f"{number}.output.LayerNorm.{part}"] for part in ("weight", "bias")))
        graph.output("read", states, "t", "width")
        return graph

    def read(
        self,
        query: FloatArray,
        candidates: FloatArray,
        lengths: IntArray,
        around: npt.NDArray[np.bool_],
    ) -> tuple[FloatArray, FloatArray]:
        """Return the (n, q, width) states of the query beside each candidate, and the candidates' (t, width).

        query: (q, width) states. candidates: (t, width) states of n candidates, which have these lengths.
        around: (t,) which of them are the text around a candidate.
        """
        inputs, in_query, is_candidate = self._inputs(query, candidates, lengths, around)
        read = self._session.run("read", inputs)
        return read[in_query].reshape(len(lengths), len(query), -1), read[is_candidate]

    def _inputs(
        self,
        query: FloatArray,
        candidates: FloatArray,
        lengths: IntArray,
        around: npt.NDArray[np.bool_],
    ) -> tuple[dict[str, Any], IntArray, npt.NDArray[np.bool_]]:
        """The inputs of the graph, the rows of the query in each pair, and whether a row is a candidate's."""
        n, q = len(lengths), len(query)
        starts = np.cumsum(lengths + q) - lengths - q
        in_query = (starts[:, None] + np.arange(q)).ravel()
        is_candidate = np.ones(len(candidates) + n * q, dtype=bool)
        is_candidate[in_query] = False
        states = np.empty((len(is_candidate), query.shape[1]), dtype=np.float32)
        states[in_query] = np.tile(query + self._sides[0], (n, 1))
        states[is_candidate] = candidates + self._sides[1 + around.astype(np.int64)]
        side = np.arange(int(lengths.max()) + q) < q
        other = (side[:, None] != side)[None, None].astype(np.float32)
        inputs = {"states": states, "other": other, **Layout.inputs(lengths + q)}
        return inputs, in_query, is_candidate


def _bert_names(trained: Tensors, ours: str, theirs: str) -> Tensors:
    """The tensors of a layer by the names that BERT has for them."""
    tensors = {}
    for part in ("weight", "bias"):
        three = np.split(trained[f"{ours}.query_key_value.{part}"], 3)
        for name, tensor in zip(("query", "key", "value"), three, strict=True):
            tensors[f"{theirs}.attention.self.{name}.{part}"] = tensor
        for name, own in PARTS.items():
            tensors[f"{theirs}.{name}.{part}"] = trained[f"{ours}.{own}.{part}"]
    return tensors
