"""The models that ship with the package; docs/models describes each."""
