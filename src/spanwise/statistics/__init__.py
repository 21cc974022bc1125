"""What a difference between two conditions is worth.

    bootstrap   documents resampled with replacement: replicates, intervals, p-values
    clusters    documents that share a question's evidence, as one cluster
    contrasts   pairing, exclusions, effect sizes, Holm
    dose        the slope over the depth of the path
"""

from spanwise.statistics.bootstrap import Resampled, resample
from spanwise.statistics.clusters import connected
from spanwise.statistics.contrasts import Contrast, Paired, holm, infer, pair, render_p
from spanwise.statistics.dose import slopes

__all__ = [
    "Contrast",
    "Paired",
    "Resampled",
    "connected",
    "holm",
    "infer",
    "pair",
    "render_p",
    "resample",
    "slopes",
]
