"""What all commands share: exit codes and errors."""

import pytest

from precise_rag.cli import main


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["segment", "nowhere.txt"], "no such file or folder"),
        (["segment", "{folder}/docs/empty.md"], "the document is empty"),
        (["segment", "{folder}/binary.txt"], "binary"),
        (["segment", "{folder}/docs/lamp.txt", "--model", "no-such-model"], "no-such-model"),
        (["index", "{folder}/docs/empty.md", "--out", "{folder}/new"], "every document is empty"),
        (
            ["index", "{folder}/docs", "--out", "{folder}/new", "--encoder", "no/such-encoder"],
            "no/such-encoder",
        ),
        (["ask", "{folder}/nowhere", "Who?"], "no index"),
        (["ask", "{folder}/index", " "], "the query must not be blank"),
    ],
)
def test_bad_input_ends_in_one_line_and_leaves_no_index(folder, precise, args, message):
    (folder / "binary.txt").write_bytes(b"\x00\x01")
    code, out, err = precise(*(arg.format(folder=folder) for arg in args))
    assert (code, out) == (1, "")
    assert err.startswith("precise: ")
    assert err.count("\n") == 1
    assert message in err
    assert not (folder / "new").exists()


def test_an_unknown_command_exits_with_2(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["answer"])
    assert exit_.value.code == 2
