import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from precise_rag.encoders import load_encoder
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import ModelError


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A local embeddings server that returns the rows in reverse order, as the protocol allows."""
    requests: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(body)
            rows = [
                {"object": "embedding", "index": i, "embedding": [3.0 * len(text), 4.0 * len(text)]}
                for i, text in enumerate(body["input"])
            ]
            status = 401 if self.headers["Authorization"] == "Bearer wrong" else 200
            reply = {"object": "list", "model": body["model"], "data": rows[::-1], "usage": {}}
            data = json.dumps(reply if status == 200 else {"error": {"message": "bad key"}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}/v1", requests
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_texts_are_sent_in_batches(server: tuple[str, list[dict[str, object]]]) -> None:
    pytest.importorskip("openai")
    url, requests = server
    encoder = OpenAIEncoder("small", dimensions=2, base_url=url, api_key="k")
    np.testing.assert_allclose(encoder.encode(["ab", ""]), [[0.6, 0.8]] * 2, rtol=1e-6)
    assert requests == [{"input": ["ab", " "], "model": "small", "dimensions": 2, "encoding_format": "float"}]
    assert encoder.name == "openai:small/2"
    encoder.encode(["x"] * 3000)
    assert [len(r["input"]) for r in requests[1:]] == [2048, 952]  # type: ignore[arg-type]
    encoder._connection.take().close()


def test_failures_are_model_errors(
    server: tuple[str, list[dict[str, object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    encoder = OpenAIEncoder("small", base_url=server[0], api_key="wrong", max_retries=0)
    with pytest.raises(ModelError, match="openai:small returned no embeddings"):
        encoder.encode(["x"])
    encoder._connection.take().close()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        load_encoder("openai:small/2").encode(["x"])
