"""What a person reads: one page, its figures as files, and nothing that was not computed before.

    gather      artifacts -> plain records, each table read once
    current     whether these artifacts belong together
    diagnose    what the tables themselves say of the set-up: sizes, identity, routing, ratios
    cells       cells of a corpus: names, order, absent ones
    judgement   what may be said of a contrast; verdict: the words for it
    deviations  what differs from the registration, in words; summary: the verdict in short
    markup      escaping, numbers as text
    figures     inline SVG, plots: which rows each figure has
    tables      HTML tables; contrast_tables: of the contrasts; checks_tables: of what stands beside
                their intervals
    exploratory cuts that were not fixed beforehand: types of question, budgets
    replication the contrasts over corpora
    sections    section recall by corpus size
    methods     how to read the page, and versions
    units       the study of exact evidence units: its part of the page, from units_verdict (words),
                units_tables, units_pairs (comparisons) and units_plots
    sweep_tables what sweeps found: trials, importance, slices
    asked       where the questions come from, and the funnel of written ones
    questions   the questions behind each number, as data that the page opens lazily
    page        the whole page: page.html; page.css, questions.css; page.js (shared), copy.js
                (tables), table.js (the list of questions), places.js (what a question is made of),
                view.js (one question), start.js
    registered  other names of corpora in the registration, and corpora without results
    files       metrics.json, plots/*.csv, tables/*.csv
    terminal    the verdicts as text, for the end of a run
    build       report(): all of it

No clock time, commit or machine path stands in any output: same input, same bytes.
"""

from spanwise.reporting.build import report

__all__ = ["report"]
