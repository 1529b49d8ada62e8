"""Long results of tools, with what answers a question somewhere in them."""

import json
from pydoc_data.topics import topics

PAGE = "\n\n".join(topics[name] for name in ("try", "while", "with", "for"))
RECORDS = [{"id": i, "note": "discontinued in May" if i == 77 else "available"} for i in range(300)]
LOG = "\n".join(
    f"2026-03-02 12:{i % 60:02d}:11 worker {i % 7} "
    + ("failed: disk /dev/sdb1 is full" if i == 211 else f"handled request {i}")
    for i in range(400)
)
KINDS = {
    "page": (PAGE, "When is __exit__ called?", "__exit__"),
    "log": (LOG, "Which disk is full?", "/dev/sdb1 is full"),
    "json": (json.dumps(RECORDS), "Which item was discontinued?", '"id": 77'),
}


def read_file(path: str) -> str:
    """Read a file."""
    return {"worker.log": LOG, "note.txt": "  short, and with space \n"}[path]
