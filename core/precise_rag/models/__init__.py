"""The models that ship with the package; docs/models.md describes each."""
