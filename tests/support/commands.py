"""Runs of the command, and what they leave."""

from precise_rag.testing import HashEncoder

Result = tuple[int, str, str]
LAMP = "The lamp is lit at dusk. Ilse keeps it.\n\nThe road to the pass is closed in winter."
ENCODER = HashEncoder(16)


def one_line(result: Result) -> str:
    """The error of a command that failed as it should."""
    code, _, err = result
    assert code == 1, result
    assert err.startswith("precise: "), result
    assert err.count("\n") == 1, result
    assert "fault of precise-rag" not in err, result
    assert "Traceback" not in err, result
    return err
