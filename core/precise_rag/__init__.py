"""Precise retrieval for RAG: the few sentences that answer a question, for fewer tokens.

Each public name is loaded when it is first used, so `import precise_rag` stays light. They are listed in
`__init__.pyi`.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
