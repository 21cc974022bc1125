"""What a person reads: one page, its figures as files, and nothing that was not computed before.

    gather      artifacts -> plain records, each table read once
    diagnose    what the tables themselves say of the set-up: sizes, identity, routing, ratios
    verdict     records -> states and plain words
    markup      escaping, numbers as text
    figures     inline SVG: forest plot, condition means, dose
    tables      HTML tables
    units       the study of exact evidence units: its part of the page, from units_verdict (words),
                units_tables and units_plots
    asked       where the questions come from, and the funnel of written ones
    questions   the questions behind each number, as data that the page opens lazily
    page        the whole page: page.html, page.css, page.js
    files       metrics.json, plots/*.csv, tables/*.csv
    terminal    the verdicts as text, for the end of a run
    build       report(): all of it

No clock time, commit or machine path stands in any output: same input, same bytes.
"""

from spanwise.reporting.build import report

__all__ = ["report"]
