import pytest

from precise_rag.encoders import devices
from precise_rag.encoders.devices import runs_on_onnx
from precise_rag.errors import InputError


@pytest.mark.parametrize(
    ("device", "gpu", "installed", "expected"),
    [
        ("cpu", True, True, True),
        (None, False, True, True),
        (None, True, True, False),
        (None, True, False, True),
        ("cuda", True, True, False),
    ],
)
def test_onnx_runs_what_is_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, device: str | None, gpu: bool, installed: bool, expected: bool
) -> None:
    monkeypatch.setattr(devices, "has_gpu", lambda: gpu)
    monkeypatch.setattr(devices, "is_installed", lambda module: installed)
    assert runs_on_onnx(device) is expected


def test_a_device_is_a_text() -> None:
    with pytest.raises(InputError, match="device must be a text"):
        runs_on_onnx(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("usable", [True, False])
def test_a_driver_alone_is_no_gpu(usable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch built without CUDA has no device, whatever the driver sees."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: object())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)
    assert devices.has_gpu.__wrapped__() is usable
