"""What each condition and each segmentation retrieved for one question, the evidence marked.

    found     the question, and the texts that its spans index
    records   what the stages left of it; what is retrieved now
    gathered  both together, as data
    door      what `spanwise show` does: the data as JSON, or as lines to read
"""

from spanwise.show.door import as_json, show
from spanwise.show.found import OPEN, find

__all__ = ["OPEN", "as_json", "find", "show"]
