"""Second opinions on the top of a ranking: models that read a question and a text together.

    scoring  one interface to cross-encoders, whichever library runs them
    kept     each distinct pair once, the same score whatever else was asked
    cells    the ranked lists of one embedder, reordered
"""
