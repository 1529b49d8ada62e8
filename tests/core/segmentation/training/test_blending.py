import numpy as np

from precise_rag.segmentation.sage import blend
from precise_rag.segmentation.training.blending import blend_by_halves, fit_blend_weights
from precise_rag.segmentation.training.labelled_documents import UNKNOWN


def test_the_better_model_gets_the_weight() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((4000, 2)) < 0.3
    right, noise = np.where(truth, 1.5, -1.5) + rng.normal(size=truth.shape), rng.normal(size=truth.shape)
    targets = truth.astype(np.int8)
    targets[:50] = UNKNOWN
    weights = fit_blend_weights(right, noise, targets)
    # By hand: for normal logits of unit variance, 3 apart, the log-odds are 3 x + log(0.3 / 0.7).
    np.testing.assert_allclose(weights, [[3, 3], [0, 0], [-0.85, -0.85]], atol=0.35)
    np.testing.assert_allclose(fit_blend_weights(noise, right, targets)[1], [3, 3], atol=0.35)
    unlabelled = np.full_like(targets, UNKNOWN)
    np.testing.assert_allclose(
        blend(right, noise, fit_blend_weights(right, noise, unlabelled)), noise, atol=1e-6
    )
    half = np.arange(len(truth)) % 2
    blended = blend_by_halves(right, noise, targets, half)
    other = fit_blend_weights(right[half == 1], noise[half == 1], targets[half == 1])
    np.testing.assert_allclose(blended[half == 0], blend(right, noise, other)[half == 0], atol=1e-6)
