"""Runs of the command, and what they leave."""

from typing import Any

from precise_rag.cli import main
from precise_rag.testing import HashEncoder

Result = tuple[int, str, str]
LAMP = "The lamp is lit at dusk. Ilse Brandt keeps it.\n\nThe road to the pass is closed in winter."
ENCODER = HashEncoder(16)


def command(capsys: Any, *args: object) -> Result:
    """Run a command in this process: its exit code, its output and its errors."""
    capsys.readouterr()
    code = main([str(arg) for arg in args])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def one_line(result: Result) -> str:
    """The error of a command that failed as it should."""
    code, _, err = result
    assert code == 1, result
    assert err.startswith("precise: "), result
    assert err.count("\n") == 1, result
    assert "fault of precise-rag" not in err, result
    assert "Traceback" not in err, result
    return err
