"""Training of segmentation models, with torch."""
