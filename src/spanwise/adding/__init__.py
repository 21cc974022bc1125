"""A person's folder as a corpus of the study: looked at, copied, tracked, entered, or not at all.

    wish        what a person asks for
    looking     what lies in a folder, which reader it is for, what must not be taken
    contents    its documents and questions, read; all that is wrong with them at once
    asked       a question file of JSON lines, CSV or YAML as entries of a corpus's own questions
    rows        the rows of a CSV as such entries
    converted   Markdown in place of what it was made of, with a record of that
    docling     the program that makes it, as a person installed it
    plainer     its Markdown without marks that nobody would quote
    tracked     DVC: pull, add, the remote that is not the bundled one
    stopping    signals that ask to end: they unwind it, and wait while something must be whole
    undone      one at a time, and all as it was when something fails
    door        the plan, its checks, and carrying it out whole
"""
