"""spanwise: which way of cutting, labelling and routing text retrieves the evidence?

The rooms, in the order the data meets them (docs/architecture.md draws the map):

    errors, spans, schemas, params    the four rooms everyone may enter
    text                              decoding, sentences with exact offsets, token counts
    corpora                           trusted view, one reader for each source format
    questions                         anchors, harvested and authored questions
    structure                         section trees: native, induced, verified
    chunking                          fixed and structural chunks, size matching
    prefixes                          path, placebo (context: with a language model)
    models                            where weights come from: a path, packages, a model hub
    embedding                         encoders; each distinct text once
    index                             LanceDB and FAISS
    retrieval                         flat, routed, BM25
    measures                          coverage, ranked, budget, bundles
    statistics                        contrasts, bootstrap, Holm
    registration                      what was fixed beforehand, against what ran
    reporting, tracking               the page, the tables; MLflow
    cli                               thin
"""

__version__ = "0.1.0"
