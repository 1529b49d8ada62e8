from argparse import Namespace

import pytest

from benchmarks import record


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["peers", "--data", "/home/me/sets"], "python -m benchmarks.compare peers --data DIR"),
        (
            ["peers", "--data=/sets", "--sample", "5"],
            "python -m benchmarks.compare peers --data DIR --sample 5",
        ),
        (["peers", "--work", "/tmp/w", "--vectors=/tmp/v"], "python -m benchmarks.compare peers --data DIR"),
    ],
)
def test_a_recorded_command_names_no_folder_of_the_machine(words, command):
    assert record.command_line("benchmarks.compare", Namespace(data=None), words) == command


def test_a_command_without_question_sets_is_recorded_as_given():
    assert (
        record.command_line("benchmarks.x", Namespace(), ["--long", "3"]) == "python -m benchmarks.x --long 3"
    )


def test_a_result_is_written_as_markdown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["x"])
    made = record.made("benchmarks.x", Namespace(sample=3, seed=1), note="n")
    path = record.save("name", made, "# Title\n\nBody.\n")
    assert path == tmp_path / f"name-{made['date']}.md"
    text = path.read_text(encoding="utf-8")
    assert text == capsys.readouterr().out.removesuffix("\n")
    assert text.startswith("# Title\n\n`python -m benchmarks.x`, ")
    assert "seed 1, at most 3 questions a set" in text
    assert text.endswith("\n\nBody.\n")
