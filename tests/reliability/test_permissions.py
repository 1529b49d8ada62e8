"""Without permission: one clear error, and nothing half-written. Tried as another user, so only by root."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from precise_rag.index import HybridIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

pytestmark = pytest.mark.skipif(getattr(os, "getuid", lambda: 1)() != 0, reason="only root acts as others")

COMMAND = """
import os, sys
from precise_rag.cli import index, main, saved_index
from precise_rag.testing import HashEncoder

index.load_encoder = saved_index.load_encoder = lambda *_, **__: HashEncoder(8)
warm = sys.argv.pop(1)
docs, out = os.path.join(warm, "docs"), os.path.join(warm, "index")
for command in (["index", docs, "--out", out], ["ask", out, "x?", "--encoder", "x"], ["segment", docs]):
    main(command)
sys.stderr.write("as another user:\\n")
sys.stderr.flush()
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
sys.exit(main())
"""


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that everybody can reach, with documents and an index that only root can write."""
    base = Path(tempfile.mkdtemp(prefix="precise-"))
    base.chmod(0o755)
    for name in ("docs", "warm/docs"):
        (base / name).mkdir(parents=True)
        (base / name / "lamp.md").write_text("The lamp is lit at dusk.")
    HybridIndex.build([Document("road", "The road is closed.")], HashEncoder(8)).save(base / "index")
    yield base
    shutil.rmtree(base)


def as_nobody(base: Path, *arguments: object) -> tuple[int, str]:
    """The exit code and the errors of a command that another user runs."""
    command = [sys.executable, "-c", COMMAND, base / "warm", *arguments]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=base, check=False)
    assert "as another user:" in done.stderr, done.stderr
    return done.returncode, done.stderr.partition("as another user:\n")[2]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("out", ["index", "new"])
def test_an_index_is_not_written_where_the_user_may_not(out: str, base: Path) -> None:
    before = tree(base / "index")
    code, error = as_nobody(base, "index", base / "docs", "--out", base / out)
    assert (code, error.count("\n")) == (1, 1), error
    assert "Permission denied" in error
    assert tree(base / "index") == before
    assert not (base / "new").exists()


def test_documents_that_the_user_may_not_read_are_named_and_the_others_read(base: Path) -> None:
    (base / "docs" / "secret.md").write_text("secret")
    (base / "docs" / "secret.md").chmod(0o600)
    (base / "docs" / "closed").mkdir(mode=0o700)
    code, error = as_nobody(base, "segment", base / "docs")
    assert (code, error.count("\n")) == (1, 2), error
    assert "closed: cannot be read (Permission denied)" in error
    assert "secret.md: cannot be read (Permission denied)" in error


def test_an_index_that_the_user_may_not_read_is_one_error(base: Path) -> None:
    for path in (base / "index").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
    code, error = as_nobody(base, "ask", base / "index", "Who?", "--encoder", "x")
    assert (code, error.count("\n")) == (1, 1), error
    assert "Permission denied" in error
