"""What users ask of a pipeline, in all its ways. The loop of feedback has tests of its own."""

import asyncio
from types import SimpleNamespace

import pytest

from precise_rag import Document, GradientSelector, PreciseRAG, load_reranker
from precise_rag.answer import Answer
from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.errors import InputError, LLMServerError
from precise_rag.filters import Field
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Selection, best_first
from support.counted import Counted
from support.documents import read_cases

DOCUMENTS = [
    Document(
        "harbour",
        "The harbour froze in January. Fishing boats stayed on land until spring.\n\n"
        "A ferry brings flour and letters twice a week. The captain is called Ilse Brandt.",
        {"year": 1931},
    ),
    Document(
        "school",
        "The school has two rooms. Forty children learn there in winter.\n\n"
        "In summer the teacher repairs the roof.",
    ),
    Document("copy", "The captain is called Ilse Brandt."),
]
TEXTS = {document.id: document.text for document in DOCUMENTS}
QUESTION = "What is the captain called?"
ACCEPTED = '{"reason": "so", "score": 9, "adjustment": 0}'


@pytest.fixture(scope="module")
def rag():
    return PreciseRAG.from_documents(
        DOCUMENTS,
        encoder=HashEncoder(),
        reranker=load_reranker("packaged"),
        selector=GradientSelector(min_k=1, ratio=0.3),
    )


def answering(rag, llm, **options):
    """The same index with a language model."""
    return PreciseRAG(
        rag.index, llm=llm, **{"reranker": rag.path.reranker, "selector": rag.path.selector, **options}
    )


def judged(text):
    """What a model replies that drafts `text` and accepts it."""
    return lambda messages: ACCEPTED if "adjustment" in messages[0].content else text


def test_the_answering_sentence_comes_first_and_every_candidate_has_one_decision(rag):
    selection = rag.retrieve(QUESTION)
    best = selection.kept[0]
    assert TEXTS[best.doc_id][best.start : best.end] == best.text
    assert "Ilse Brandt" in best.text
    assert best.score_scale == "probability"
    ids = [decision.candidate.id for decision in selection.decisions]
    assert len(set(ids)) == len(ids)
    assert [decision.rank for decision in selection.decisions] == list(range(1, len(ids) + 1))
    assert all(selection.reasons)
    assert asyncio.run(rag.aretrieve(QUESTION)) == selection


def test_an_equal_sentence_is_sent_for_each_of_several_things_and_that_of_the_one_asked_for_is_found():
    names = [
        f"{name} {number}" for name in ("Aurora", "Borealis", "Corona", "Delta") for number in (1, 2, 3, 4)
    ]
    text = "# Kettle {}\n\nIt boils water. The colour is {}. The lift goes to all floors.\n"
    documents = [Document(name, text.format(name, "red")) for name in names]
    rag = PreciseRAG.from_documents(documents)
    found = rag.retrieve("What is the colour of the kettle Corona 3?").kept
    assert ("Corona 3", "The colour is red.") in {(one.doc_id, one.text) for one in found}
    found = PreciseRAG.from_documents(documents[:4]).retrieve("Where does the lift go to all floors?").kept
    assert {one.doc_id for one in found if "lift" in one.text} == {*names[:4]}


async def test_without_a_language_model_the_answer_is_the_context_and_says_so(rag):
    answer = rag.answer(QUESTION)
    assert answer.kind == "context"
    assert answer.text == "\n\n".join(passage.text.strip() for passage in answer.passages)
    assert {p.doc_id for p in answer.passages} == {c.doc_id for c in answer.selection.kept}
    assert "no language model" in answer.note
    assert [item async for item in rag.astream(QUESTION)][:-1] == answer.pieces


def test_models_are_loaded_before_the_first_search_and_a_failed_load_is_left_to_its_use(rag):
    class Reranker:
        name, score_scale, loaded = "own", "probability", 0

        def load_model(self):
            self.loaded += 1
            raise RuntimeError("not now")

        def score(self, query, candidates):
            return [0.5] * len(candidates)

    reranker = Reranker()
    once, trace = PreciseRAG(rag.index, reranker=reranker), Trace(QUESTION)
    assert once.retrieve("When did the harbour freeze?").kept
    once.retrieve(QUESTION, trace=trace)
    assert reranker.loaded == 1
    settings = {
        "share_of_best": 0.1,
        "min_score": 0.003,
        "enough_tokens": 500,
        "enough_share": 1 / 3,
        "min_keep": 3,
    }
    assert trace.stages[-1].settings == settings


def test_an_answer_is_judged_cites_its_passages_and_an_observer_sees_every_record(rag):
    seen = []
    engine = answering(rag, ScriptedLLM(judged("Ilse Brandt [1], they say [9].")))
    answer = engine.answer(QUESTION, trace=Trace(QUESTION, observer=seen.append))
    assert (answer.text, answer.kind) == ("Ilse Brandt [1], they say [9].", "generated")
    assert answer.judgement.score == 9
    assert [getattr(record, "name", getattr(record, "role", "round")) for record in seen] == [
        *("search", "rerank", "redundancy", "evidence", "selection", "answer", "judge", "round")
    ]
    assert answer.trace.settings["selector"]["ratio"] == pytest.approx(0.3)
    (cited,) = answer.citations
    assert (cited.number, cited.pieces[0].doc_id) == (1, cited.doc_id)
    assert TEXTS[cited.doc_id][cited.start : cited.end].split() == cited.text.split()
    assert f"the answer cites [9], but it was written from {len(answer.passages)} passage" in answer.note


def test_a_number_in_brackets_that_an_answer_quotes_from_a_passage_is_no_citation():
    texts = "Bo keeps the lamp [2].", "The archive is in the tower."
    given = [Candidate(f"d{n}", 0, len(text), text, 0.9, "probability") for n, text in enumerate(texts)]
    for draft, cited in ((texts[0], []), ("Bo keeps the lamp [1-2].", [1, 2])):
        rag = PreciseRAG(None, ScriptedLLM(judged(draft)), reranker=None)
        answer = rag.answer(QUESTION, candidates=given)
        assert [passage.number for passage in answer.citations] == cited


@pytest.mark.slow
async def test_a_batch_respects_the_concurrency_limit_and_when_cancelled_leaves_nothing_running(rag):
    quick, slow = (Counted(judged("Brandt"), delay=seconds) for seconds in (0.005, 30))
    questions = [f"{QUESTION} {n}" for n in range(50)]
    answers = await answering(rag, quick).abatch(questions, concurrency=5)
    assert [answer.trace.question for answer in answers] == questions
    assert 1 < quick.most <= 5
    task = asyncio.create_task(answering(rag, slow).abatch(questions, concurrency=3))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert slow.running == 0


async def test_one_failure_of_a_batch_is_raised_or_returned(rag):
    def script(messages):
        return LLMServerError("m: down") if "stormy" in messages[1].content else ACCEPTED

    engine = answering(rag, ScriptedLLM(script))
    with pytest.raises(LLMServerError, match="m: down"):
        await engine.abatch(["good", "stormy"])
    answers = await engine.abatch(["good", "stormy", None], return_errors=True)
    assert [type(answer) for answer in answers] == [Answer, LLMServerError, InputError]
    with pytest.raises(InputError, match="concurrency must be at least 1, got 0"):
        await engine.abatch(["good"], concurrency=0)
    assert await engine.abatch([]) == []
    for queries in (QUESTION, {"query": QUESTION}, None):
        with pytest.raises(InputError, match="queries must be a list"):
            await engine.abatch(queries)


def test_a_stage_is_the_default_off_or_ones_own(rag):
    class Nothing:
        def filter(self, query, candidates):
            return Selection.of((c, False, "no") for c in candidates)

    bare = PreciseRAG(rag.index, reranker=None, redundancy=None, evidence=None, selector=None)
    trace = Trace(QUESTION)
    assert [*bare.retrieve(QUESTION, trace=trace).kept] == best_first(rag.index.search(QUESTION, 50))
    assert [stage.name for stage in trace.stages] == ["search", "selection"]
    found = PreciseRAG(rag.index, reranker=None).retrieve(QUESTION).kept
    assert found[0].score_scale == "rank"
    assert PreciseRAG(rag.index, relevance=Nothing()).retrieve(QUESTION).kept == ()
    for name in ("rewriter", "redundancy", "relevance", "evidence", "selector"):
        with pytest.raises(InputError, match=f'{name} must be "default", None or an object with'):
            PreciseRAG(rag.index, **{name: "off"})
    with pytest.raises(InputError, match="feedback must be a FeedbackController"):
        PreciseRAG(rag.index, feedback=SimpleNamespace(next_step=max))
    one = SimpleNamespace(queries=str, filter=lambda *given: "abc", select=lambda *given, **further: [])
    for name, told in read_cases("documents.json", "what stages of a user return"):
        with pytest.raises(InputError, match=told):
            PreciseRAG(rag.index, **{name: one}).retrieve(QUESTION)
    for name, right in read_cases("documents.json", "names that PreciseRAG does not have"):
        with pytest.raises(InputError, match=rf"PreciseRAG has no argument '{name}'; .*{right}"):
            PreciseRAG.from_documents((Document(str(1 / 0), "") for _ in "ab"), **{name: None})
    with pytest.raises(InputError, match="index must be an index or an object with search"):
        PreciseRAG("my-index")


def test_the_selector_of_a_user_is_told_the_question_and_the_step_of_feedback(rag):
    asked = []

    class First:
        def select(self, candidates, *, query="", step=0):
            asked.append((query, step))
            return Selection.of((c, rank < 1 + step, "rank") for rank, c in enumerate(candidates))

    more = '{"score": 5, "adjustment": 1}'
    llm = ScriptedLLM(["a", more, "b", ACCEPTED])
    answer = PreciseRAG(rag.index, llm, selector=First()).answer(QUESTION)
    assert asked == [(QUESTION, 0), (QUESTION, 1)]
    assert [len(turn.selection.kept) for turn in answer.rounds] == [1, 2]
    once = ScriptedLLM(["Ilse Brandt."])
    assert PreciseRAG(rag.index, once, feedback=None).answer(QUESTION).text == "Ilse Brandt."


def test_a_stage_of_a_user_may_ask_the_model_of_the_pipeline(rag):
    """A stage with `llm` and `steps` shares the session: its calls are traced and billed."""

    class Own:
        llm = None
        steps = RelevanceFilter().steps

        def filter(self, query, candidates):
            raise AssertionError("the pipeline asks in its own session")

    llm = ScriptedLLM(lambda messages: '{"scores": []}')
    trace = Trace(QUESTION)
    PreciseRAG(rag.index, llm, relevance=Own()).retrieve(QUESTION, trace=trace)
    assert {call.role for call in trace.calls} == {"relevance"}
    with pytest.raises(InputError, match="the relevance of the preset 'precise' asks a language model"):
        PreciseRAG(rag.index, relevance=Own())


async def test_any_source_is_searched_with_a_filter_only_if_there_is_one_and_given_candidates_are_not(rag):
    candidates = rag.index.search(QUESTION, 3)
    given = PreciseRAG(None).retrieve(QUESTION, candidates=reversed(candidates))
    assert {d.candidate.id for d in given.decisions} == {c.id for c in candidates}
    with pytest.raises(InputError, match="there is no index to search"):
        PreciseRAG(None).retrieve(QUESTION)
    asked = []

    class Source:
        def search(self, query, top_k, **given):
            asked.append(("search", given))
            return rag.index.search(query, top_k)

        async def asearch(self, query, top_k, **given):
            asked.append(("asearch", given))
            return rag.index.search(query, top_k)

    over = PreciseRAG(Source(), selector=rag.path.selector)
    assert over.retrieve(QUESTION) == await over.aretrieve(QUESTION, filter={"year": 1931})
    assert asked == [("search", {}), ("asearch", {"filter": {"year": 1931}})]
    base = {"year": {"$in": [1931]}}
    kept = over.with_filter(base), rag.with_filter(base)
    base["year"]["$in"].append(1932)
    kept[0].retrieve(QUESTION)
    assert asked[-1] == ("search", {"filter": {"year": {"$in": [1931]}}})
    assert kept[1].filter == Field("year").is_in([1931])


def test_a_follow_up_question_is_made_self_contained_first_and_stays_if_that_fails(rag):
    history = [("user", "Who steers the ferry?"), {"role": "assistant", "content": "Ilse Brandt."}]
    llm = ScriptedLLM(["Who is the captain Ilse Brandt?", "A captain [1].", ACCEPTED])
    engine = PreciseRAG(rag.index, llm, prompts={"standalone": "Say it alone."})
    answer = engine.answer("And who is she?", history=history)
    assert answer.question == "Who is the captain Ilse Brandt?"
    assert [call.role for call in answer.trace.calls] == ["standalone", "answer", "judge"]
    first, second = (call.text for call in llm.calls[:2])
    assert "Say it alone." in first
    assert "Who steers the ferry?" in first
    assert answer.question in second
    assert "And who is she?" not in second
    with pytest.raises(InputError, match=r"prompts must have texts under the keys standalone, rewrite,"):
        PreciseRAG(rag.index, llm, prompts={"draft": "x"})
    for reply, why in ((LLMServerError("m: down"), "m: down"), ("She is Ilse.", "the reply is no question")):
        failing, trace = PreciseRAG(rag.index, ScriptedLLM([reply])), Trace(QUESTION)
        failing.retrieve(QUESTION, history=history, trace=trace)
        assert trace.notes == [f"the question was not made self-contained: {why}"]
    with pytest.raises(InputError, match="history must hold messages"):
        failing.retrieve(QUESTION, history=["Hello?"])
    with pytest.raises(InputError, match="asks a language model, and there is none; pass llm="):
        rag.retrieve(QUESTION, history=history)


@pytest.mark.parametrize("options", ["AB", ["a", "a "], ["a", ""], ["a", None], 5])
def test_options_are_different_texts(rag, options):
    with pytest.raises(InputError, match=r"^options must"):
        rag.answer(QUESTION, options=options)


async def test_options_make_a_question_multiple_choice_everywhere(rag):
    def engine():
        return PreciseRAG(rag.index, ScriptedLLM(["B", ACCEPTED]))

    options = ["Ada", "Ilse Brandt"]
    answers = [engine().answer(QUESTION, options=options), await engine().aanswer(QUESTION, options=options)]
    answers += [list(engine().stream(QUESTION, options=options))[-1]]
    answers += await engine().abatch([{"query": QUESTION, "options": options}])
    assert [answer.choice for answer in answers] == [1] * 4
    assert answers[0].trace.calls[0].prompt_version.endswith("/choice")
