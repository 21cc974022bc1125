"""What a difference between two conditions is worth.

    bootstrap     documents resampled with replacement: replicates, intervals, p-values
    linearised    a ratio's error and Student's t: of record where documents are few
    permutation   signs flipped by document
    mixed         random intercepts by REML, and why they disagree
    power         what a study of this size could find, and what it would take
    cautions      what makes an interval less sure than its level
    clusters      documents that share a question's evidence, as one cluster
    contrasts     pairing, exclusions, effect sizes, Holm, the interval of record
    dose          the slope over the depth of the path
    study         what inference on one corpus reads; means
    checks        what stands beside an interval of record
    families      every contrast of a corpus, confirmatory and exploratory
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
