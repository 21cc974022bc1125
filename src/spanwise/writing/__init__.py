"""Questions for a corpus that has none: sampled spans, wordings by a model or people, the filter.

    words       what the filter compares, and cheap signs of a name
    leakage     the filter: ROUGE-L and shared runs of words
    sampling    gold spans, drawn before there is a question
    prompts     what is asked of a writer, and what counts as an answer
    rounds      both rounds of the filter, for a model and for people
    funnel      what became of every sample, counted
    balance     which survivors become the corpus's questions
    worksheet   sheets for people, and question files without the documents' text
    asking      one corpus: its questions, whoever wrote them
    rehearsal   what asking would take; nothing is asked
    door        `spanwise ask`
"""
