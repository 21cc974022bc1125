"""Ways of looking at the runs: search strings, and the views of an experiment that hold them.

A view is a state of MLflow's page, kept where the page itself keeps one that a person saves: in a
tag of the experiment. It stands in the page's list of views, and opens by an address that ends in
its key. It shows current runs alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spanwise.params import Params
from spanwise.tracking.record import metric_name

if TYPE_CHECKING:
    from mlflow import MlflowClient

CURRENT = "tags.`spanwise.superseded` = 'false'"

SEARCHES: Mapping[str, str] = {
    "current results alone": CURRENT,
    "one corpus": "tags.corpus = '{corpus}'",
    "one cell": "tags.cell = '{cell}'",
    "one embedder": "tags.embedder = '{embedder}'",
    "one reranker": "tags.reranker = '{reranker}'",
    "the primary cell": "tags.primary = 'true'",
    "conditions": "tags.kind = 'condition'",
    "one condition in every cell": "tags.condition = '{condition}'",
    "conditions of one segmentation": "tags.kind = 'condition' and tags.segmentation = 'induced'",
    "conditions that are routed": "tags.kind = 'condition' and tags.retrieval = 'routed'",
    "conditions of one prefix": "tags.kind = 'condition' and tags.prefix = 'path'",
    "conditions that one contrast compares": "tags.`contrast.{contrast}.side` LIKE '%'",
    "conditions that a confirmatory contrast compares": "tags.confirms != 'none'",
    "contrasts": "tags.kind = 'contrast'",
    "one contrast in every cell": "tags.contrast = '{contrast}'",
    "the registered family": "tags.family = 'contrast'",
    "confirmatory contrasts": "tags.kind = 'contrast' and tags.standing = 'confirmatory'",
    "exploratory contrasts": "tags.kind = 'contrast' and tags.standing = 'exploratory'",
    "what ran as it was registered": "tags.n_differences = '0'",
    "no demonstrations": "tags.demonstration = 'false'",
}
"""What a person looks for -> search string of MLflow; braces stand for a name of the study."""

SHARED = "mlflow.sharedViewState."
"""Before the key of a view, in the name of the experiment's tag."""

_TRAINING = "workflowType=machine_learning"
"""In an address: show what belongs to runs, not to traces of language models."""

_WIDTH = 130
"""Of a column, in pixels: room for a figure, and for most of its name."""

_FIGURES = ("delta", "ci_low", "ci_high", "p_holm")


@dataclass(frozen=True, slots=True)
class View:
    """One view of an experiment: which runs, in what order, with what columns.

    key:     what the address ends in.
    columns: as MLflow's page names them: tags.`NAME`, metrics.`NAME`.
    order:   the column to sort by; the highest first unless `ascending`.
    """

    key: str
    title: str
    search: str
    columns: tuple[str, ...]
    order: str
    ascending: bool = False

    def saved(self, moment: int) -> str:
        """What the tag holds, in the page's own words.

        moment: ms since 1970; the page lists the latest view first.
        """
        state = {
            "searchFilter": f"{self.search} and {CURRENT}",
            "orderByKey": self.order, "orderByAsc": self.ascending,
            "startTime": "ALL", "lifecycleFilter": "Active", "datasetsFilter": [],
            "selectedColumns": list(self.columns), "columnOrder": list(self.columns),
            "columnWidths": dict.fromkeys(self.columns, _WIDTH),
        }
        return json.dumps({
            "name": self.title, "createdAt": moment, "updatedAt": moment,
            "state": json.dumps(state, ensure_ascii=False),
        }, ensure_ascii=False)

    def path(self, experiment: str) -> str:
        """The address below the server's own."""
        return f"/#/experiments/{experiment}/runs?{_TRAINING}&viewStateShareKey={self.key}"


def views(params: Params) -> list[View]:
    """The views of a corpus's experiment, the one to open first before the others."""
    measure = params.primary.measure
    mean, delta = _metric(metric_name(measure)), _metric(metric_name(measure, "delta"))
    facts = _tags("segmentation", "prefix", "retrieval")
    contrasts = tuple(
        _metric(f"contrast/{name}/{figure}") for name in params.contrasts for figure in _FIGURES
    )
    figures = tuple(_metric(metric_name(measure, figure)) for figure in _FIGURES)
    said = (*_tags("family", "standing"), *figures, *_tags("n_differences"))
    primary = SEARCHES["the primary cell"]
    return [
        View("spanwise-conditions", "conditions of the primary cell",
             f"{SEARCHES['conditions']} and {primary}", (*facts, mean, *contrasts), mean),
        View("spanwise-contrasts", "contrasts of the primary cell",
             f"{SEARCHES['contrasts']} and tags.family = 'contrast' and {primary}", said,
             _tag("contrast"), ascending=True),
        View("spanwise-confirmatory", "confirmatory contrasts",
             SEARCHES["confirmatory contrasts"], said, delta),
        View("spanwise-cells", "conditions of every cell", SEARCHES["conditions"],
             (*_tags("cell"), *facts, mean), mean),
    ]


def searches(params: Params) -> dict[str, str]:
    """Every search string with names of this study: its first corpus, its primary cell."""
    corpus, primary = next(iter(params.corpora)), params.primary
    contrast, (condition, _) = next(iter(params.contrasts.items()))
    names = {
        "corpus": corpus, "embedder": primary.embedder, "reranker": primary.reranker,
        "cell": f"{corpus}/{primary.embedder}/{primary.reranker}",
        "contrast": contrast, "condition": condition,
    }
    return {title: search.format(**names) for title, search in SEARCHES.items()}


def save(client: MlflowClient, experiment: str, wanted: Sequence[View]) -> None:
    """Write views into an experiment's tags; what stands there already is left."""
    found = client.get_experiment(experiment)
    for i, view in enumerate(wanted):
        # The store's own moment: a second call writes the same.
        name, value = f"{SHARED}{view.key}", view.saved((found.creation_time or 0) - i)
        if found.tags.get(name) != value:
            client.set_experiment_tag(experiment, name, value)


def _tag(name: str) -> str:
    return f"tags.`{name}`"


def _tags(*names: str) -> tuple[str, ...]:
    return tuple(_tag(name) for name in names)


def _metric(name: str) -> str:
    return f"metrics.`{name}`"
