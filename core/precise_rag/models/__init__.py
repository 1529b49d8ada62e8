"""The models that ship with the package, and their files; docs/models describes each model."""
