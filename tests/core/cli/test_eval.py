"""`precise eval`, with an encoder that needs no model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.cli import eval as command
from precise_rag.cli import main
from precise_rag.evaluation.questions import to_record
from precise_rag.testing import HashEncoder
from support.chat_server import ChatServer, says
from support.village import PLAN, TOPICS, dataset, story

pytest.importorskip("ir_measures")


@pytest.fixture(autouse=True)
def hash_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "load_encoder", lambda *_, **__: HashEncoder())


def test_pipelines_are_compared_and_the_results_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    data = dataset()
    docs, questions, out = tmp_path / "docs.jsonl", tmp_path / "q.jsonl", tmp_path / "out"
    docs.write_text("\n".join(json.dumps({"id": d.id, "text": d.text}) for d in data.documents), "utf-8")
    lost = {"question": "Who built the moon?", "evidence": "built by nobody known"}
    bare = {"question": "What is a village?"}
    records = [*(json.dumps(to_record(q)) for q in data.questions), json.dumps(lost), json.dumps(bare)]
    questions.write_text("\n".join(records), "utf-8")
    common = ("--documents", str(docs), "--pipelines", str(tmp_path / "plan.toml"), "--out", str(out))
    assert main(["eval", *common, "--questions", str(questions), "--budgets", "100,20"]) == 0
    shown = capsys.readouterr().out
    assert "recall@20" in shown
    assert "8 questions (left out: 1 without evidence, 1 whose evidence is not in the documents)" in shown
    results = json.loads((out / "results.json").read_text("utf-8"))
    means = {p["name"]: p["means"] for p in results["results"][0]["pipelines"]}
    assert means["sentences"]["recall@20"] == pytest.approx([1, 1, 1])
    assert results["made"]["seed"] == 0
    assert (out / "report.html").stat().st_size > 5_000
    assert main(["eval", *common, "--questions", str(questions), "--json", "--sample", "3"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["questions"] == 3
    questions.write_text(json.dumps(bare), "utf-8")
    assert main(["eval", *common, "--questions", str(questions)]) == 0
    assert "recall and ranks are not measured" in capsys.readouterr().out
    for arguments, message in (
        (common, "--make-questions"),
        ((*common, "--make-questions", "5"), "--llm"),
        ((), "--sets"),
    ):
        assert main(["eval", *arguments]) == 1
        assert message in capsys.readouterr().err
    assert np.isfinite(means["ours"]["recall@20"]).all()


def test_it_makes_questions_and_has_them_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("openai", "rouge_score"):
        pytest.importorskip(module)
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
        assert main(["eval", *arguments, *model]) == 0
        n_requests = len(server.requests)
        assert main(["eval", *arguments, *model]) == 0
        assert len(server.requests) == n_requests, "neither questions nor answers are asked for twice"
    captured = capsys.readouterr()
    assert "4 questions; dropped: none" in captured.err
    assert "quality/$" in captured.out
    answers = json.loads((out / "results.json").read_text("utf-8"))["results"][0]["answers"]
    assert [row["means"]["EM"] for row in answers] == [pytest.approx([1, 1, 1])] * 3
    assert answers[1]["cost_efficiency"] > answers[0]["cost_efficiency"] > 0


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--budgets", "0"), "token counts of at least 1, separated by commas, got '0'"),
        (("--budgets", "many"), "invalid"),
        (("--metrics", "F2"), "got F2"),
    ],
)
def test_bad_options_exit_with_2(
    option: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["eval", *option])
    assert message in capsys.readouterr().err
