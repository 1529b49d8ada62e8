import pickle

import numpy as np
import pytest

from precise_rag import DenseIndex, Document
from precise_rag.encoders import load_encoder, several_devices
from precise_rag.encoders.onnx import OnnxEncoder
from precise_rag.encoders.several_devices import SpreadEncoder
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder

TEXTS = [f"{'The lamp is lit. ' * (place % 5)}Ferry {place} sails." for place in range(23)]


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> SpreadEncoder:
    """The packaged encoder on two devices, which are both the CPU here."""
    monkeypatch.setattr(several_devices, "_FEW", 4)
    encoder = load_encoder(device=["cpu", "cpu"])
    assert isinstance(encoder, SpreadEncoder)
    return encoder


def test_texts_are_dealt_to_the_devices_and_come_back_in_order(
    spread: SpreadEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = load_encoder(device="cpu")
    expected = alone.encode(TEXTS)
    given: list[list[str]] = []
    encode = OnnxEncoder.encode

    def noted(self: OnnxEncoder, texts: list[str], **more: bool) -> object:
        given.append(list(texts))
        return encode(self, texts, **more)

    monkeypatch.setattr(OnnxEncoder, "encode", noted)
    np.testing.assert_allclose(spread.encode(TEXTS), expected, atol=0.05)
    assert sorted(map(len, given)) == [11, 12]
    assert sorted(text for part in given for text in part) == sorted(TEXTS)
    characters = [sum(map(len, part)) for part in given]
    assert max(characters) < 1.2 * min(characters)
    given.clear()
    spread.encode(TEXTS[:7])
    assert given == [TEXTS[:7]]
    np.testing.assert_array_equal(spread.count_tokens(TEXTS), alone.count_tokens(TEXTS))
    np.testing.assert_allclose(spread.encode_queries(TEXTS[:2]), alone.encode_queries(TEXTS[:2]), atol=1e-3)


def test_it_is_an_encoder_of_indexes_and_pickles_as_its_names(spread: SpreadEncoder) -> None:
    assert isinstance(spread, Encoder)
    assert (spread.name, spread.dimension, spread.device) == ("all-MiniLM-L6-v2", 384, ["cpu", "cpu"])
    index = DenseIndex.build([Document("a", "Ilse keeps the lamp. Bread prices rose.")], spread)
    assert index.search("Who keeps the lamp?", 1)[0].doc_id == "a"
    again = pickle.loads(pickle.dumps(spread))
    np.testing.assert_allclose(again.encode(TEXTS), spread.encode(TEXTS), atol=1e-4)


def test_devices_are_names() -> None:
    assert isinstance(load_encoder(device=["cpu"]), OnnxEncoder)
    with pytest.raises(InputError, match="device must name a device"):
        load_encoder(device=[])
    with pytest.raises(InputError, match=r"device must be names of devices, .*, got int"):
        load_encoder(device=["cpu", 1])  # type: ignore[list-item]
