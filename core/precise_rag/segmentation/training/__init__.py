"""Training of segmentation models, in torch."""
