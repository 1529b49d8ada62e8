"""Cost of the relevance filter per question: batches against the paper's three calls.

    python -m benchmarks.reranking.llm_cost --data DIR [--questions 10] [--top 15] [--cache DIR]

The model is a local HTTP server that speaks the chat-completions protocol and gives every chunk a
score; the calls and tokens are those that a real model would get. Tokens are estimates (see
`precise_rag.llm.usage`), and so is "estimate", the least that the filter names before it spends anything.
"""

import json
import re
import time

import numpy as np

from benchmarks.reranking.held_out import held_out, new_parser, save
from precise_rag.filtering import RelevanceFilter
from precise_rag.llm import OpenAIChat
from precise_rag.trace import Trace

MODES = {
    "batch of 10": {"mode": "batch", "batch_size": 10},
    "batch of 5": {"mode": "batch", "batch_size": 5},
    "three calls": {"mode": "single"},
}


def reply(request: dict) -> object:
    """Scores for the chunks of a prompt, or one score."""
    from tests.support.chat_server import says

    _, user = (message["content"] for message in request["messages"])
    keys = re.findall(r"^\w{16} chunk (\d+-\w+)$", user, re.M)
    if not keys:
        return says(json.dumps({"score": 0.5}), usage=None)
    scores = [{"id": key, "base": 0.6, "reflection": 0.5, "critic": 0.4} for key in keys]
    return says(json.dumps({"scores": scores}), usage=None)


def main() -> None:
    from tests.support.chat_server import ChatServer

    parser = new_parser(__spec__.name, __doc__)
    parser.add_argument("--questions", type=int, default=10, help="of each set")
    parser.add_argument("--top", type=int, default=15, help="candidates that are filtered")
    options = parser.parse_args()
    rows = []
    with ChatServer(reply) as server:
        llm = OpenAIChat("local", base_url=server.url, api_key="none")
        for name, kind, lists in held_out(options):
            for mode, settings in MODES.items():
                relevance = RelevanceFilter(llm, **settings)
                traces, estimates, started = [], [], time.perf_counter()
                for one in lists[: options.questions]:
                    candidates = one.candidates[: options.top]
                    estimates.append(relevance.estimate(one.question, candidates).least)
                    traces.append(Trace(one.question))
                    relevance.filter(one.question, candidates, trace=traces[-1])
                seconds = time.perf_counter() - started
                rows.append(
                    {
                        "set": name,
                        "kind": kind,
                        "mode": mode,
                        "calls": float(np.mean([len(t.calls) for t in traces])),
                        "input tokens": float(np.mean([t.input_tokens for t in traces])),
                        "output tokens": float(np.mean([t.output_tokens for t in traces])),
                        "estimate": float(np.mean([e.input_tokens + e.output_tokens for e in estimates])),
                        "ms": seconds * 1e3 / len(traces),
                    }
                )
    save(__spec__.name, "llm-cost", "What the relevance filter costs", options, rows)


if __name__ == "__main__":
    main()
