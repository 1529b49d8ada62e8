"""What the core knows of a candidate, as JSON values for the metadata of a framework's own objects."""
