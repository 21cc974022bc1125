"""What would go wrong or take long, said before anything costs: `spanwise doctor`.

    findings   one line for each check
    machine    cores, memory, disk, and how fast this machine multiplies
    weights    models, the tokenizer, the language model and its server
    remotes    DVC's remotes, and whether private text could be pushed into the repository
    corpora    every corpus read as `parse` would read it, and what its size means
    pipeline   what dvc.lock says of each stage, and where its outputs are
    work       what is left to compute, and how sure that is
    estimates  its time, memory and bytes
    splitters  whether the packages of `external` take what params.yaml says, without a text
    cutting    corpora whose documents are too short to be cut
    truncation what encoders would not see of a chunk
    cache      the local DVC cache, object by object
    door       all of them in order, as text and as JSON
"""
