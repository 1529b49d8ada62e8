"""Models as files: `config.json` and `model.safetensors` in one folder, checked when they are read."""
