import os

# Tests never reach a model hub; this must be set before any hub client is imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
