"""One bad item never costs the others: odd text, scores, metadata, answers, traces, files and replies."""

import json
import math
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from langchain_precise import PreciseRetriever
from precise_rag import Document, GradientSelector
from precise_rag.candidate_filters import DynamicThreshold
from precise_rag.candidate_filters.relevance_scoring import parse_score, parse_scores
from precise_rag.documents import read_documents
from precise_rag.errors import InputError
from precise_rag.feedback import parse_judgement
from precise_rag.index import DenseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.prompts import cited_numbers
from precise_rag.rerank import rerank
from precise_rag.sentences import sentence_tables
from precise_rag.structure.marks import unescaped
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace import CallRecord, StageRecord, Trace
from precise_rag.types import UNSCORED, Candidate, Selection, best_first, with_scores
from support.documents import read_cases
from support.feedback import answering
from support.misbehaving import CANDIDATES, QUESTION
from support.saved_indexes import LOOP, nested

GOOD = [Document(f"d{i}", f"Keeper {i} lit the lamp. The sea was calm in {1800 + i}.") for i in range(6)]


def scorer(*scores):
    """A reranker that gives the candidates these scores."""
    return SimpleNamespace(name="scorer", score_scale="probability", score=lambda *_: list(scores))


@pytest.mark.parametrize("kind", [HybridIndex, SentenceContextIndex, WordSentenceIndex, DenseIndex])
def test_a_document_with_odd_text_and_metadata_is_found_again_exactly(kind):
    odd = Document("odd\ud83d", "A lone \ud83d surrogate. The keeper lit the lamp\udfff in 1803.", LOOP)
    index = kind.build([*GOOD, odd], HashEncoder())
    found = index.search("the \ud83d lamp\udfff of 1803", 20)
    assert {c.doc_id for c in found} >= {"d1", odd.id}
    texts = {document.id: document.text for document in (*GOOD, odd)}
    assert all(c.text == texts[c.doc_id][c.start : c.end] for c in found)


@pytest.mark.parametrize(
    "text",
    ["# Lamp {}\n\nIt is lit.\n", "<html><table><tr><td>{}</table>", "<html><h1>{}</h1><p>{} is lit.</html>"],
)
def test_a_reference_to_no_character_is_read_as_it_stands(text: str) -> None:
    reference = f"&#{'9' * 5_000};"
    document = Document("odd", text.format(reference, reference))
    assert HybridIndex.build([*GOOD, document], HashEncoder()).search("lamp", 20)
    assert unescaped(f"{reference} &#233; &#xe9; &#{'0' * 5}233 &eacute;") == f"{reference} é é é é"


def test_documents_whose_metadata_cannot_be_compared_are_replaced_and_found_again_as_the_same() -> None:
    def lamp(first: int) -> Document:
        odd = {"vector": np.arange(first, first + 2_000), "source": np.arange(2)}
        return Document("a", "# Lamp\n\nThe lamp is lit.", odd)

    index = HybridIndex.build([lamp(0)], HashEncoder())
    for first in (0, 1):
        index.add([lamp(first)])
        assert index.document("a").metadata["vector"][1_000] == 1_000 + first
        one, other = (PreciseRetriever.from_index(index).invoke("lamp")[0] for _ in range(2))
        assert one == other
    other.metadata["vector"] = np.arange(2_000)
    assert one != other


def test_a_document_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_tables, "read_structure", None)
    with pytest.raises(InputError, match=r"^the documents cannot be added: document 'd0': .*NoneType"):
        HybridIndex.build(GOOD, HashEncoder())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None, "0.9", 10**400, np.float32("nan")])
def test_an_odd_score_of_a_reranker_is_set_aside(bad):
    ranked = rerank("lamp", CANDIDATES, scorer(0.2, bad, 0.8, 0.4))
    assert [c.doc_id for c in ranked] == ["d2", "d3", "d0", "d1"]
    assert [c.score for c in ranked] == pytest.approx([0.8, 0.4, 0.2, 0.2])
    assert [UNSCORED in c.scores for c in ranked] == [False, False, False, True]
    selection = GradientSelector(min_keep=4).select(ranked)
    assert [c.doc_id for c in selection.kept] == ["d2", "d3", "d0"]
    assert selection.reasons[-1] == "it has no usable score"
    again = rerank("lamp", ranked, scorer(0.1, 0.2, 0.3, 0.9))
    assert (again[0].doc_id, UNSCORED in again[0].scores) == ("d1", False)
    odd = with_scores(CANDIDATES, [0.1, bad, 0.3, 0.2])
    assert [c.doc_id for c in best_first(odd)] == ["d2", "d3", "d0", "d1"]
    with pytest.raises(InputError, match="must return numbers"):
        rerank("lamp", CANDIDATES, scorer(*[bad] * 4))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00\x1b[31m", "\u202e"])
def test_an_answer_with_odd_characters_can_be_written(text):
    def observer(record):
        raise RuntimeError("an observer that fails costs no answer")

    llm = ScriptedLLM([f"Ada{text}", json.dumps({"score": 9, "reason": text, "adjustment": 0})])
    trace = Trace(QUESTION + text, observer=observer)
    answer = answering(llm).answer(QUESTION + text, candidates=CANDIDATES, trace=trace)
    record = json.loads(answer.trace.to_json().encode("utf-8"))
    assert record["answer"] == answer.text == f"Ada{text}"
    answer.trace.to_html().encode("utf-8")


def test_a_trace_with_odd_values_can_be_written():
    odd: dict[Any, Any] = {"nan": math.nan, "huge": 10**5_000, "array": np.float32(0.5)}
    odd["deep"] = nested(5_000)
    trace = Trace("q\ud800")
    trace.settings = odd | {(1, 2): {3, 4}, "number": np.int64(3), "loop": LOOP}
    candidate = Candidate("d", 0, 1, "x", math.inf, "rank", scores={"dense": math.nan})
    trace.add(StageRecord("selection", Selection.keep_all([candidate]), math.nan, odd))
    trace.add(CallRecord("answer", "v", "m", math.inf, cost=math.nan))
    record = json.loads(trace.to_json().encode("utf-8"))
    assert record["settings"]["number"] == 3
    assert record["stages"][0]["candidates"][0]["score"] == "inf"
    trace.to_html().encode("utf-8")


@pytest.mark.parametrize("honest", [[0.7, 0.65, 0.6, 0.2], [0.75, 0.7, 0.3, 0.1], [0.5, 0.4, 0.3, 0.2]])
def test_spam_does_not_lift_the_threshold_over_every_honest_chunk(honest):
    rule = DynamicThreshold()
    for n_spam in (1, 6, 50):
        spammed = [*honest, *[1.0] * n_spam]
        assert rule.relevant(spammed, rule.of(spammed))[0]
    assert DynamicThreshold(cap=None).of([*honest, *[1.0] * 6]).value > honest[0]


LINES = ('{"id": "a", "text": "One. Two."}', '{"sections": [{}]}', '{"text": "x", "n": [1]}')
REPLIES = read_cases("judgements.json", "odd replies")
ODD = (*'{}[]"\\:,-\0é\n ', "9" * 400, "9" * 5_000, "NaN", "1e999", "null", "\\ud83d")


def mutated(texts: tuple[str, ...], choose: random.Random) -> str:
    """One of the texts with up to five pieces replaced by odd ones."""
    text = choose.choice(texts)
    for _ in range(choose.randrange(6)):
        start = choose.randrange(len(text) + 1)
        odd = choose.choice(ODD) * choose.choice((1, 1, 1, 200))
        text = text[:start] + odd + text[start + choose.randrange(4) :]
    return text


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_files_of_random_bytes_are_read_or_refused(name: str, tmp_path: Path) -> None:
    choose = random.Random(2)
    file = tmp_path / name
    for number in range(100):
        data = "\n".join(mutated(LINES, choose) for _ in range(3)).encode("utf-8", "surrogatepass")
        file.write_bytes(data[: choose.randrange(len(data))] + choose.randbytes(3) if number % 2 else data)
        errors: list[InputError] = []
        for document in read_documents(file, on_error=errors.append):
            json.dumps(dict(document.metadata))
            assert document.id
        assert all(str(file) in str(error) for error in errors)


@pytest.mark.parametrize(
    "parse",
    [parse_judgement, parse_score, partial(parse_scores, ids=["1"]), partial(cited_numbers, passages=[])],
    ids=["judge", "score", "scores", "citations"],
)
def test_any_reply_is_parsed_or_found_unusable(parse: Callable[[str], object]) -> None:
    choose = random.Random(3)
    for _ in range(300):
        parse(mutated(REPLIES, choose))
