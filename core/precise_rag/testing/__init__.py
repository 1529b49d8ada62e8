"""Replacements for models, for tests of applications that use precise-rag.

They need no network, no key and no download, and return the same results in every run.

    from precise_rag import Document, PreciseRAG
    from precise_rag.testing import HashEncoder, ScriptedLLM

    def test_my_question_is_answered_from_the_document():
        llm = ScriptedLLM(["On river banks [1].", '{"reason": "correct", "score": 10, "adjustment": 0}'])
        documents = [Document("otters", "Otters sleep on river banks.")]
        rag = PreciseRAG.from_documents(documents, llm, encoder=HashEncoder())

        assert rag.answer("Where do otters sleep?").text == "On river banks [1]."
        assert "Otters sleep on river banks." in llm.calls[0].text

`HashEncoder` replaces the sentence encoder, `ScriptedLLM` the language model.
"""

from precise_rag.testing.encoder import HashEncoder
from precise_rag.testing.llm import ScriptedLLM

__all__ = ["HashEncoder", "ScriptedLLM"]
