"""spanwise: which way of cutting, labelling and routing text retrieves the evidence?

The rooms, in the order the data meets them (docs/architecture.md draws the map):

    errors, spans, schemas, params    the four rooms everyone may enter
    text                              decoding, sentences with exact offsets, token counts
    documents                         documents, questions and corpora, and their tables
    models                            where weights come from: a folder, packages, a model hub
    llm                               one client for language models, answers kept by digest
    embedding                         encoders; each distinct text once
    structure                         section trees: native, induced, verified, repaired
    questions                         anchors; authored and harvested questions
    corpora                           trusted view, one reader for each source format
    writing                           questions by a model or people: spans, leakage filter, funnel
    chunking                          fixed and structural chunks, size matching; units over raw
    prefixes, labelling               heading paths and placebos; every chunk under every label
    window                            what the encoder never saw
    index                             LanceDB and FAISS
    retrieval                         flat, routed, BM25
    measures                          coverage, ranked, budget, bundles
    statistics                        contrasts, bootstrap, Holm, dose
    registration                      what was fixed beforehand, against what ran
    sweep                             exploring, apart: its own documents, never the primary cell
    reporting, tracking               the page and the tables; MLflow
    layout, show, profiles            where artifacts lie; one question seen closely; whole set-ups
    adding                            a person's folder as a corpus, or nothing half-added
    doctor                            what would fail or cost, said before it does
    cli                               thin
"""

__version__ = "0.1.0"
