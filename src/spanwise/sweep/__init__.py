"""Exploring, apart from the study: Optuna over a corpus's own documents for it, never the primary
cell. No other room imports optuna.

    results  what a sweep found, as a file that git keeps; all that other rooms read
    space    what a trial may be, as the models that params.yaml is made of
    own      a corpus's documents and questions for sweeps, and why others are refused
    looked   documents that sweeps have looked at, so that none returns to the study unsaid
    kept     chunks and vectors of earlier trials, by digest
    bench    one trial: chunks, prefixes, lists, measures
    trials   trials drawn one after the other, kept in a journal, resumed
    weight   which parameter moves the measure
    door     what `spanwise sweep` does

Everything here is exploratory. A sweep reads `artifacts/parse/<corpus>` alone, and writes
`artifacts/sweep/<corpus>`, `sweeps/<corpus>` and `sweeps/<corpus>.json` alone: no artifact of the
study changes.
"""
