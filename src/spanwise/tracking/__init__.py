"""Finished results -> MLflow. No other room imports mlflow.

    record     one run as a value, and the digest of all that it holds
    estimates  what `infer` says of contrasts, as metrics, tags and files
    runs       what each run of the ablation holds, read from the artifacts
    units      the same of the study of exact evidence units
    sweeps     the same of each trial of a sweep
    place      where the store lies: MLFLOW_TRACKING_URI, else mlruns/ in the project
    views      search strings, and the views of an experiment that MLflow's page offers
    page       what a person is told once that page answers
    store      the runs that MLflow has against the runs that results call for

An experiment `spanwise/<corpus>` holds a parent run for each cell, and below it one run for each
condition and one for each contrast that was estimated. `spanwise/units/<corpus>` holds a parent run
for each retriever, and below it one for each segmentation and one for each comparison; a corpus
without that study has no such experiment. `spanwise/sweep/<corpus>` holds a run for each trial of
its sweeps, every one exploratory. Each run carries the digest of all that it holds in the
tag `spanwise.content`, which is how a second call knows that there is nothing to add.
"""

from spanwise.tracking.place import ui_command
from spanwise.tracking.record import metric_name
from spanwise.tracking.store import Summary, track, track_sweeps

__all__ = ["Summary", "metric_name", "track", "track_sweeps", "ui_command"]
