"""A person's folder as a corpus of the study: looked at, copied, tracked, entered, or not at all.

    looking     what lies in a folder, which reader it is for, what must not be taken
    asked       a question file of JSON lines, CSV or YAML as entries of a corpus's own questions
    tracked     DVC: pull, add, the remote that is not the bundled one
    door        the plan, its checks, and carrying it out whole
"""
