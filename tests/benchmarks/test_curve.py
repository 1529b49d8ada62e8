import pytest

from benchmarks.scale import curve


@pytest.mark.parametrize("way", curve.WAYS)
def test_each_way_is_built_and_asked(way: str) -> None:
    if way not in curve.OURS:
        pytest.importorskip("langchain_core" if "LangChain" in way else "llama_index.core")
    found = curve.measure(way, 400, 2)
    assert found["sentences"] == 400
    assert found["CPU ms"] >= 0
    assert found["peak MB"] > 0
