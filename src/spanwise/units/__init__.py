"""The study of exact evidence units: does what was retrieved hold the evidence whole?

    identity    a unit, an anchor and the parent that both are slices of
    cutting     documents -> blocks, sections and windows, each with its manifest
    needs       questions -> information needs with anchors and bundles
    ranking     units and needs -> ranked lists, by BM25 and by vectors
    reach       where in a list a bundle is held; budgets; the cause of a miss
    outcomes    lists -> one row for each need, what is held equal, and how much of it; traces
    compare     outcomes -> means, and differences paired by need and clustered by document
    trace       one need's frozen lists, and whether they still stand

Its questions are earlier ones than the ablation's: no prefix, no structure but the text's own.
"""
