"""Documents for Ray's workers, and a worker that is killed at its work."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

DOCUMENTS = [
    Document(f"d{i}", f"Cat number {i} sleeps. It wakes at {i} o'clock.\n\nThen it eats.", {"shelf": i})
    for i in range(12)
]


class MortalEncoder(HashEncoder):
    """Kills its own process, once, when it encodes document 5."""

    def __init__(self, marker: Path) -> None:
        super().__init__()
        self.marker = marker

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        if any("number 5" in text for text in texts) and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts)
