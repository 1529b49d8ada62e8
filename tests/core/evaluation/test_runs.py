"""Pipelines compared from end to end: settings, runs that are taken up again, measures, pages."""

import json
import re
import threading
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag import PreciseRAG
from precise_rag.cli import eval as command
from precise_rag.errors import InputError, LLMConnectionError
from precise_rag.evaluation import Dataset, Evidence, Question
from precise_rag.evaluation.peers.searches import LlamaIndexLLMRerank
from precise_rag.evaluation.peers.units import Unit
from precise_rag.evaluation.questions import make_questions, to_record
from precise_rag.evaluation.report.page import render_report
from precise_rag.evaluation.report.tables import format_answers, format_table
from precise_rag.evaluation.runs.answering import answer_questions
from precise_rag.evaluation.runs.evaluate import Outcome, circumstances, evaluate
from precise_rag.evaluation.runs.pipelines import DEFAULT_PLAN, Pipeline, Plan, load_plan
from precise_rag.evaluation.runs.run import run_pipeline
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.types import Document, Message
from precise_rag.viz.charts import line_chart, score_curve
from support.chat_server import ChatServer, says

pytest.importorskip("ir_measures")

TOPICS = ("mill", "baker", "ferry", "school", "orchard", "smithy", "chapel", "market")
PLAN = """
baseline = "whole documents"

[pipelines."whole documents"]
split = { name = "langchain-recursive", chunk_size = 500 }

[pipelines.sentences]
split = { name = "sentences" }
search = "hybrid"

[pipelines.ours]
split = { name = "sentences" }
search = "hybrid"
rerank = "packaged"
redundancy = {}
select = { min_k = 2 }
top_k = 8
"""


def story(topic: str) -> Document:
    filler = " ".join(f"Much else is told about house number {n} of the village." for n in range(6))
    return Document(topic, f"{filler}\n\nThe {topic} was built by {topic.title()}son in <1802>. {filler}")


def dataset() -> Dataset:
    documents = tuple(map(story, TOPICS))
    questions = []
    for document in documents:
        start = document.text.index("The ", 40)
        evidence = (Evidence(document.id, start, document.text.index(">.") + 2),)
        questions.append(
            Question(
                document.id, f"Who built the {document.id}?", evidence, (f"{document.id}son",), document.id
            )
        )
    return Dataset("village", documents, tuple(questions))


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    return load_plan(path)


@pytest.fixture
def outcome(plan: Plan, tmp_path: Path) -> Outcome:
    (found,) = evaluate(plan, [dataset()], HashEncoder(), tmp_path / "runs", budgets=(20, 40))
    return found


def test_measures_tell_small_units_from_large_ones(outcome: Outcome) -> None:
    whole, sentences, ours = outcome.rows
    assert whole.means["recall@20"].mean == 0, "the evidence stands behind 60 tokens"
    assert sentences.means["recall@20"].mean == 1
    assert sentences.against_baseline["recall@20"].wins == len(TOPICS)
    assert sentences.against_baseline["recall@20"].p_value < 0.02
    assert whole.means["Hits@1"].mean == 0, "reading order: the paragraph before the evidence comes first"
    assert sentences.means["MRR@10"].mean == 1
    assert ours.means["tokens"].mean < sentences.means["tokens"].mean
    assert ours.recall_per_1000_tokens > sentences.recall_per_1000_tokens
    assert whole.means["recall"].mean == 1


def test_pipelines_over_one_index_share_it(outcome: Outcome) -> None:
    whole, sentences, ours = outcome.rows
    for fact in ("build_seconds", "cut_seconds", "n_units", "memory_mb"):
        assert ours.facts[fact] == sentences.facts[fact]
    assert whole.facts["n_units"] < sentences.facts["n_units"]


def test_precision_counts_what_was_sent(outcome: Outcome) -> None:
    values = outcome.measured[0].values
    question = outcome.measurer.dataset.questions[0]
    visible = sum(not c.isspace() for d in outcome.dataset.documents for c in d.text)
    wanted = outcome.measurer.corpus.locate(question.evidence)[0]
    assert values["precision"][0] == pytest.approx((wanted[1] - wanted[0]) / visible)


def test_a_run_goes_on_where_it_stopped(plan: Plan, tmp_path: Path) -> None:
    encoder, settings, folder = HashEncoder(), plan.pipelines[1], tmp_path / "runs"
    full = run_pipeline(settings, dataset(), encoder, folder)
    lines = full.path.read_text("utf-8").splitlines(keepends=True)
    full.path.write_text("".join(lines[:4]) + lines[4][:20], encoding="utf-8")
    again = run_pipeline(settings, dataset(), encoder, folder)
    assert again.pieces == full.pieces
    assert again.path.read_text("utf-8").splitlines(keepends=True)[:4] == lines[:4]
    assert len(again.path.read_text("utf-8").splitlines()) == len(lines)
    encoded = encoder.calls[:]
    run_pipeline(settings, dataset(), encoder, folder)
    assert encoder.calls == encoded, "a complete run builds no index"


def test_a_pipeline_that_cannot_run_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        '[pipelines.a]\nsplit = {name = "sentences"}\n[pipelines.b]\nsplit = {name = "nowhere"}\n', "utf-8"
    )
    (found,) = evaluate(load_plan(path), [dataset()], HashEncoder(), tmp_path / "runs")
    assert [row.name for row in found.rows] == ["a"]
    assert "nowhere" in found.failed["b"]


def test_pipelines_that_ask_a_language_model_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        '[pipelines.plain]\nsplit = {name = "langchain-recursive", chunk_size = 40}\ntop_k = 15\n'
        '[pipelines.asked]\nsplit = {name = "langchain-recursive", chunk_size = 40}\ntop_k = 15\n'
        'search = "llamaindex-llm-rerank"\n'
        '[pipelines.filtered]\nsplit = {name = "sentences"}\ntop_k = 15\nrelevance = {batch_size = 5}\n',
        "utf-8",
    )
    plan = load_plan(path)
    (without,) = evaluate(plan, [dataset()], HashEncoder(), tmp_path / "runs", budgets=(20, 40))
    assert set(without.failed) == {"asked", "filtered"}
    assert "--llm" in without.failed["asked"]

    def reply(messages: Sequence[Message]) -> str:
        text = messages[-1].content
        topic = next(t for t in TOPICS if f"Who built the {t}?" in text)
        if "Relevance:" in "".join(m.content for m in messages):
            shown = text[text.rindex("Let's try this now") :]
            pieces = shown.split("Document ")[1:]
            numbers = [n for n, piece in enumerate(pieces, start=1) if f"The {topic} was" in piece]
            return "\n".join(f"Doc: {n}, Relevance: 9" for n in numbers) or "Doc: 1, Relevance: 1"
        keys = re.findall(r"chunk (\d+-\w+)$", text, re.M)
        return json.dumps(
            {"scores": [{"id": k, "base": 0.5, "reflection": 0.5, "critic": 0.5} for k in keys]}
        )

    llm = ScriptedLLM(reply, name="a-model")
    (found,) = evaluate(plan, [dataset()], HashEncoder(), tmp_path / "runs", budgets=(20, 40), llm=llm)
    plain, asked, filtered = found.rows
    assert not found.failed
    assert plain.means["llm calls"].mean == 0
    assert asked.means["llm calls"].mean == 2, "fifteen units, ten a call"
    assert filtered.means["llm calls"].mean == 3
    assert asked.means["llm tokens"].mean > 100
    assert asked.means["MRR@10"].mean >= plain.means["MRR@10"].mean
    assert "llm calls" in format_table(found.rows)
    n_calls = len(llm.calls)
    (again,) = evaluate(plan, [dataset()], HashEncoder(), tmp_path / "runs", budgets=(20, 40), llm=llm)
    assert len(llm.calls) == n_calls
    assert again.rows == found.rows


def test_a_reply_that_llm_rerank_cannot_read_names_nothing() -> None:
    documents = dataset().documents
    units = [Unit(d.id, 0, len(d.text), d.text) for d in documents]
    for text in ("Doc: 3rd, Relevance: 7", "the third one, I think", "Doc: 99, Relevance: 7"):
        search = LlamaIndexLLMRerank(documents, units, HashEncoder(), ScriptedLLM([text]))
        assert search.search("Who built the mill?", 5) == []


def test_settings_decide_the_fingerprint_and_the_name_does_not(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "renamed.toml"
    path.write_text(PLAN.replace("sentences]", "renamed]").replace("top_k = 8", "top_k = 9"), "utf-8")
    renamed = load_plan(path)
    assert renamed.pipelines[1].fingerprint == plan.pipelines[1].fingerprint
    assert renamed.pipelines[2].fingerprint != plan.pipelines[2].fingerprint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no pipelines"),
        ("x = [", "not valid TOML"),
        ('[pipelines.a]\ncolour = "red"', "colour"),
        ("[pipelines.a]\ntop_k = 3", 'either "split" or "index"'),
        ('[pipelines.a]\nindex = {kind = "odd"}', "sentence-context"),
        ("[pipelines.a]\nsplit = {chunk_size = 3}", 'needs a "name"'),
        ('[pipelines.a]\nsplit = {name = "sentences"}\nsearch = "odd"', "langchain-ensemble"),
        ('baseline = "b"\n[pipelines.a]\nsplit = {name = "sentences"}', "baseline 'b'"),
        ('[pipelines.a]\nsplit = {name = "sentences"}\ntop_k = 0', "top_k is 0"),
    ],
)
def test_plans_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_plan(path)


def test_the_packaged_plan_builds(tmp_path: Path) -> None:
    packaged = load_plan(DEFAULT_PLAN)
    assert packaged.baseline == "LangChain recursive 200"
    for settings in packaged.pipelines:
        selection = Pipeline(settings, dataset().documents, HashEncoder()).retrieve("Who built the mill?")
        assert any(c.doc_id == "mill" for c in selection.kept)


def test_the_packaged_plan_ends_with_the_library_as_it_comes() -> None:
    settings = load_plan(DEFAULT_PLAN).pipelines[-1]
    rag = PreciseRAG.from_documents(dataset().documents, encoder=HashEncoder())
    pipeline = Pipeline(settings, dataset().documents, HashEncoder())
    n_dropped = 0
    for topic in TOPICS:
        ours, theirs = (one.retrieve(f"Who built the {topic}?") for one in (pipeline, rag))
        assert [c.score for c in ours.kept] == [c.score for c in theirs.kept]
        assert ours.kept[0] == theirs.kept[0], "equals behind it may come in another order"
        n_dropped += len(ours.decisions) - len(ours.kept)
    assert n_dropped > 0


def test_the_report_shows_curves_and_the_evidence_that_was_sent(outcome: Outcome) -> None:
    page = render_report([outcome], circumstances(0))
    assert page.count("<svg") > len(outcome.dataset.documents) // 2
    assert "<mark>The mill was built by Millson in &lt;1802&gt;.</mark>" in page
    assert "Won: 8 of 8 questions" in page
    assert "<script" not in page
    assert "http" not in page
    quality, cost = format_table(outcome.rows).split("\n\n")
    assert "recall@20" in quality
    assert "memory MB" in cost
    assert f"All {len(TOPICS)} questions: recall of each pipeline at 20 tokens" in page
    assert "points</b>" in page, "the budget where most questions differ"
    for row in outcome.rows:
        assert row.facts["build_seconds"] > 0
        assert row.facts["memory_mb"] is None or row.facts["memory_mb"] >= 0


def test_plots_place_values_and_cuts() -> None:
    chart = line_chart(
        {"a<b": [(200, 50.0), (400, 60.0)], "c": [(200, 50.0), (400, 60.0)]}, x_label="x", y_label="y"
    )
    assert "a&lt;b 60" in chart
    assert chart.count("<polyline") == 4
    labels = [float(part.split('y="')[1].split('"')[0]) for part in chart.split("<text")[-2:]]
    assert abs(labels[0] - labels[1]) >= 12, "labels of equal values do not cover each other"
    marked = line_chart({"a": [(200, 50.0)]}, x_label="x", y_label="y", points={"b": (100, 70.0)})
    assert "b: 70% in 100 tokens" in marked
    assert marked.count("<path") == 1
    curve = score_curve([0.9, 0.5, 0.1], [True, True, False], [False, True, False], "a title")
    assert curve.count("<circle") == 3
    assert curve.count('fill="none"') == 1
    assert 'class="cut"' in curve
    assert score_curve([], [], [], "") == ""


def test_answers_are_scored_priced_and_kept(outcome: Outcome) -> None:
    pytest.importorskip("rouge_score")

    def reply(messages: Any) -> str:
        text: str = messages[-1].content
        name = text.rsplit("Who built the ", 1)[1].split("?")[0]
        return f"{name.title()}son" if f"built by {name.title()}son" in text else "unknown"

    llm = ScriptedLLM(reply, name="gpt-4o-mini")
    answered = answer_questions(outcome, llm)
    assert [row.means["EM"].mean for row in answered.answers] == [1, 1, 1]
    whole, sentences, _ = answered.answers
    assert sentences.input_tokens < whole.input_tokens
    assert sentences.cost_efficiency is not None
    assert whole.cost_efficiency is not None
    assert sentences.cost_efficiency > whole.cost_efficiency
    n_calls = len(llm.calls)
    again = answer_questions(outcome, llm)
    assert len(llm.calls) == n_calls == 3 * len(TOPICS)
    assert again.answers == answered.answers
    assert "quality/$" in format_answers(again.answers)
    assert json.loads(json.dumps(again.to_dict()))["answers"][0]["means"]["EM"] == [1, 1, 1]


def test_a_failing_model_is_asked_no_further_and_what_it_said_is_kept(outcome: Outcome) -> None:
    pytest.importorskip("rouge_score")
    asked, refused = [], threading.Event()

    def reply(messages: Any) -> Any:
        asked.append(messages)
        if "Who built the mill?" in messages[-1].content:
            refused.set()
            return LLMConnectionError("the server is gone")
        refused.wait(5)
        return "somebody"

    one = replace(outcome, runs=outcome.runs[:1], rows=outcome.rows[:1], measured=outcome.measured[:1])
    with pytest.raises(LLMConnectionError, match="gone"):
        answer_questions(one, ScriptedLLM(reply, name="gpt-4o-mini"))
    n_kept = len(asked) - 1
    llm = ScriptedLLM(lambda _: "somebody", name="gpt-4o-mini")
    answered = answer_questions(one, llm)
    assert len(llm.calls) == len(TOPICS) - n_kept
    assert answered.answers[0].questions == len(TOPICS)


def test_feedback_asks_again_with_another_min_k(tmp_path: Path) -> None:
    pytest.importorskip("rouge_score")
    path = tmp_path / "plan.toml"
    path.write_text(
        '[pipelines.fixed]\nsplit = {name = "sentences"}\nfeedback = {min_k = 1, max_rounds = 2}\n'
        '[pipelines.once]\nsplit = {name = "sentences"}\n',
        "utf-8",
    )
    one = replace(dataset(), questions=dataset().questions[:1])
    (found,) = evaluate(load_plan(path), [one], HashEncoder(), tmp_path / "runs", budgets=(40,))

    def reply(messages: Any) -> str:
        if "score" in messages[0].content.lower():
            score = 9 if "\nmillson\n" in messages[-1].content else 3
            return f'{{"score": {score}, "adjustment": 1}}'
        return "millson" if messages[-1].content.count("passage") > 2 else "nobody"

    llm = ScriptedLLM(reply, name="gpt-4o-mini")
    looped, once = answer_questions(found, llm).answers
    assert (looped.means["EM"].mean, once.means["EM"].mean) == (1, 1)
    assert looped.input_tokens > once.input_tokens
    assert looped.cost is not None
    assert once.cost is not None
    assert looped.cost > once.cost


def test_without_evidence_only_cost_and_answers_are_measured(plan: Plan, tmp_path: Path) -> None:
    data = dataset()
    bare = replace(data, questions=tuple(replace(q, evidence=()) for q in data.questions))
    (found,) = evaluate(plan, [bare], HashEncoder(), tmp_path / "runs")
    assert set(found.rows[0].means) == {"tokens", "ms", "llm calls", "llm tokens"}
    assert "recall" not in format_table(found.rows).splitlines()[0].replace("recall/1k", "")
    assert "village" in render_report([found], circumstances(0))


def test_questions_are_made_checked_and_counted() -> None:
    def reply(messages: list[Message]) -> str:
        passage = messages[-1].content
        if "The mill" in passage:
            return "no JSON here"
        topic = next((t for t in TOPICS if f"The {t} was" in passage), None)
        records = [{"question": "Q?", "answer": "A", "quote": "never written"}]
        if topic:
            quote = f"the {topic} was   built"
            records.append({"question": f"Who built the {topic}?", "answer": f"{topic}son", "quote": quote})
        records.append({"question": "", "answer": "A", "quote": "x"})
        return f"Here: ```{json.dumps({'questions': records})}```"

    documents = dataset().documents
    made = make_questions(documents, ScriptedLLM(reply), 50, seed=1)
    assert {q.doc_id for q in made.questions} == set(TOPICS) - {"mill"}
    texts = {d.id: d.text for d in documents}
    for question in made.questions:
        (place,) = question.evidence
        assert texts[place.doc_id][place.start : place.end] == f"The {question.doc_id} was built"
    assert made.dropped == {"unparsed": 1, "evidence not found": 7, "incomplete": 7}
    few = make_questions(documents, ScriptedLLM(reply), 2, seed=1)
    assert len(few.questions) == 2
    assert few.questions == make_questions(documents, ScriptedLLM(reply), 2, seed=1).questions
    with pytest.raises(InputError, match="no document"):
        make_questions([Document("x", "short")], ScriptedLLM([]), 1)


def run_command(*argv: str) -> int:
    parser = ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["eval", *argv])
    return int(args.run(args))


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "load_encoder", lambda *_, **__: HashEncoder())
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    data = dataset()
    docs, questions, out = tmp_path / "docs.jsonl", tmp_path / "q.jsonl", tmp_path / "out"
    docs.write_text("\n".join(json.dumps({"id": d.id, "text": d.text}) for d in data.documents), "utf-8")
    lost = {"question": "Who built the moon?", "evidence": "built by nobody known"}
    bare = {"question": "What is a village?"}
    records = [*(json.dumps(to_record(q)) for q in data.questions), json.dumps(lost), json.dumps(bare)]
    questions.write_text("\n".join(records), "utf-8")
    common = ("--documents", str(docs), "--pipelines", str(tmp_path / "plan.toml"), "--out", str(out))
    assert run_command(*common, "--questions", str(questions), "--budgets", "100,20") == 0
    shown = capsys.readouterr().out
    assert "recall@20" in shown
    assert "8 questions (left out: 1 without evidence, 1 whose evidence is not in the documents)" in shown
    results = json.loads((out / "results.json").read_text("utf-8"))
    means = {p["name"]: p["means"] for p in results["results"][0]["pipelines"]}
    assert means["sentences"]["recall@20"] == [1, 1, 1]
    assert results["made"]["seed"] == 0
    assert (out / "report.html").stat().st_size > 5_000
    assert run_command(*common, "--questions", str(questions), "--json", "--sample", "3") == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["questions"] == 3
    questions.write_text(json.dumps(bare), "utf-8")
    assert run_command(*common, "--questions", str(questions)) == 0
    assert "recall and ranks are not measured" in capsys.readouterr().out
    with pytest.raises(InputError, match="--make-questions"):
        run_command(*common)
    with pytest.raises(InputError, match="--llm"):
        run_command(*common, "--make-questions", "5")
    with pytest.raises(InputError, match="--sets"):
        run_command()
    assert np.isfinite(means["ours"]["recall@20"]).all()


def test_the_command_makes_questions_and_has_them_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("openai", "rouge_score"):
        pytest.importorskip(module)
    monkeypatch.setattr(command, "load_encoder", lambda *_, **__: HashEncoder())
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    docs, out = tmp_path / "docs.jsonl", tmp_path / "out"
    docs.write_text("\n".join(json.dumps({"id": t, "text": story(t).text}) for t in TOPICS), "utf-8")

    def reply(request: dict[str, Any]) -> Any:
        asked, data = (message["content"] for message in request["messages"])
        if "test questions" not in asked:
            return says(data.rsplit("Who built the ", 1)[1].split("?")[0] + "son", usage=(data.count(" "), 1))
        topic = next((t for t in TOPICS if f"The {t} was" in data), "")
        record = {
            "question": f"Who built the {topic}?",
            "answer": f"{topic}son",
            "quote": f"The {topic} was built",
        }
        return says(json.dumps({"questions": [record]}))

    with ChatServer(reply) as server:
        arguments = ["--documents", str(docs), "--pipelines", str(tmp_path / "plan.toml"), "--out", str(out)]
        model = [
            "--budgets",
            "20,40",
            "--make-questions",
            "4",
            "--llm",
            "gpt-4o-mini",
            "--base-url",
            server.url,
        ]
        assert run_command(*arguments, *model) == 0
        n_requests = len(server.requests)
        assert run_command(*arguments, *model) == 0
        assert len(server.requests) == n_requests, "neither questions nor answers are asked for twice"
    captured = capsys.readouterr()
    assert "4 questions; dropped: none" in captured.err
    assert "quality/$" in captured.out
    answers = json.loads((out / "results.json").read_text("utf-8"))["results"][0]["answers"]
    assert [row["means"]["EM"] for row in answers] == [[1, 1, 1]] * 3
    assert answers[1]["cost_efficiency"] > answers[0]["cost_efficiency"] > 0
