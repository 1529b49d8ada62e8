"""A local chat-completions server with scripted replies and faults."""

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One reply of the server.

    body: a dict is sent as JSON, a text or bytes unchanged.
    status: the HTTP status.
    headers: further headers.
    stall: seconds to wait before the first byte, or in the middle of a stream.
    cut: whether to close the connection before the body, or in the middle of a stream.
    endless: seconds between the bytes of a body that never ends; None for a body that ends.
    """

    body: dict[str, Any] | str | bytes = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    stall: float = 0.0
    cut: bool = False
    endless: float | None = None


def says(
    text: str, usage: tuple[int, int] | None = (11, 7), *, finish_reason: str = "stop", **options: Any
) -> Reply:
    """Return a chat completion with this text. usage: tokens of prompt and reply; None leaves them out."""
    message = {"role": "assistant", "content": text}
    body: dict[str, Any] = {
        "id": "c1",
        "object": "chat.completion",
        "created": 0,
        "model": "local-model",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
    }
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return Reply(body, **options)


def fails(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    """Return an error reply in OpenAI's form."""
    error = {"message": message, "type": "error", "code": code, "param": None}
    return Reply({"error": error}, status, {name.replace("_", "-"): value for name, value in headers.items()})


Script = Sequence[Reply] | Callable[[dict[str, Any]], Reply]


class ChatServer:
    """A server on a free port of localhost, for use in a `with` statement.

    script: the replies in order, of which the last is repeated; or a function from the request's body
    to a reply.
    requests, headers: (attributes) the body and the headers of each request.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.open_requests = 0
        self._script = script
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> "ChatServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            if callable(self._script):
                return self._script(request)
            return self._script[min(len(self.requests), len(self._script)) - 1]

    def _count(self, change: int) -> None:
        with self._lock:
            self.open_requests += change

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server._count(1)
                try:
                    reply = server._next(request, {k.lower(): v for k, v in self.headers.items()})
                    if request.get("stream") and reply.status == 200 and isinstance(reply.body, dict):
                        self._stream(request, reply)
                    else:
                        self._whole(reply)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                finally:
                    server._count(-1)

            def _begin(self, status: int, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def _whole(self, reply: Reply) -> None:
                server._released.wait(reply.stall)
                text = json.dumps(reply.body) if isinstance(reply.body, dict) else reply.body
                body = text if isinstance(text, bytes) else text.encode()
                headers = {"Content-Type": "application/json", **reply.headers}
                if reply.endless is not None:
                    self._begin(reply.status, {**headers, "Connection": "close"})
                    while not server._released.wait(reply.endless):
                        self.wfile.write(b" " if reply.endless else b" " * 2**16)
                    return
                self._begin(reply.status, {**headers, "Content-Length": str(len(body))})
                if reply.cut:
                    self.close_connection = True
                else:
                    self.wfile.write(body)

            def _stream(self, request: dict[str, Any], reply: Reply) -> None:
                assert isinstance(reply.body, dict)
                text = reply.body["choices"][0]["message"]["content"]
                words = re.findall(r"\S+ ?", text)
                events = [self._event(reply, {"content": word}, None) for word in words]
                middle = len(events) // 2
                events.append(self._event(reply, {}, reply.body["choices"][0]["finish_reason"]))
                if request.get("stream_options", {}).get("include_usage") and "usage" in reply.body:
                    events.append(
                        {**self._event(reply, {}, None), "choices": [], "usage": reply.body["usage"]}
                    )
                self._begin(200, {"Content-Type": "text/event-stream", "Connection": "close"})
                for number, event in enumerate(events):
                    if number == middle and reply.cut:
                        return
                    if number == middle:
                        server._released.wait(reply.stall)
                    self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                    self.wfile.flush()
                self.wfile.write(b"data: [DONE]\n\n")

            def _event(self, reply: Reply, delta: dict[str, str], finish: str | None) -> dict[str, Any]:
                assert isinstance(reply.body, dict)
                choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
                same = {name: reply.body[name] for name in ("id", "created", "model")}
                return {**same, "object": "chat.completion.chunk", "choices": choices}

            def log_message(self, *args: object) -> None:
                pass

        return Handler


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Wait until `condition` is true. Returns False if it is not within the time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()
