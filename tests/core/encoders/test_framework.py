import numpy as np
import pytest

from precise_rag.encoders import load_encoder


class LlamaIndexLike:
    model_name = "toy"

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return [[3.0 * len(text), 4.0 * len(text)] for text in texts]

    def get_query_embedding(self, query: str) -> list[float]:
        return [0.0, 2.0]


class LangChainLike:
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[3.0, 4.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [0.0, 2.0]


@pytest.mark.parametrize(
    ("embedding", "name"), [(LlamaIndexLike(), "LlamaIndexLike:toy"), (LangChainLike(), "LangChainLike")]
)
def test_embedding_objects_are_recognised_by_their_methods(embedding: object, name: str) -> None:
    encoder = load_encoder(embedding)
    assert encoder.name == name
    assert encoder.dimension == 2
    np.testing.assert_allclose(encoder.encode(["ab", "c"]), [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(encoder.encode_queries(["q"]), [[0, 1]], rtol=1e-6)
    assert encoder.encode([]).shape == (0, 2)
    assert encoder.encode_queries([]).shape == (0, 2)


def test_tokens_are_estimated() -> None:
    assert load_encoder(LangChainLike()).count_tokens(["", "Cat naps."]).tolist() == [0, 3]
