"""A trace with every kind of record, and a secret in every text."""

from typing import Any

from precise_rag.trace import CallRecord, RoundRecord, StageRecord, Trace
from precise_rag.types import Candidate, Decision, Judgement, Message, Selection

SECRET = "the patient's name"
KEPT = Candidate("d", 0, 9, f"Text with {SECRET}.", 0.9, "probability", n_tokens=5, scores={"bm25": 8.4})
DROPPED = Candidate("d", 9, 20, f"More of {SECRET}.", 0.2, "probability", n_tokens=6)
SELECTION = Selection((Decision(1, KEPT, True, "first"), Decision(2, DROPPED, False, "sharp drop")))


def full_trace() -> Trace:
    trace = Trace(f"What is {SECRET}?")
    trace.add(StageRecord("selection", SELECTION, 1.25, {"ratio": 0.3, "min_k": 1}, 1, f"limit: {SECRET}"))
    usage: dict[str, Any] = {"input_tokens": 100, "output_tokens": 10, "cost": 0.002, "round": 1}
    said = {"messages": (Message("user", f"Where is {SECRET}?"),), "text": f"Here is {SECRET}."}
    trace.add(CallRecord("answer", "answer/1/open", "m", 20.0, **usage, **said))
    trace.add(CallRecord("judge", "judge/1/json", "m", 5.0, error=f"LLMServerError: m: {SECRET}", round=1))
    judgement = Judgement(None, 0, "failed", f"raw {SECRET}")
    trace.add(RoundRecord(1, 0, ("d:0-9",), judgement, f"the judge failed: {SECRET}", f"Here is {SECRET}."))
    trace.notes.append(f"the judge failed: {SECRET}")
    return trace
