"""DVC's remotes, object by object. No other room asks a remote anything itself.

    settings  DVC's settings, and whether git would take what lies in a remote
    bundled   what the remote inside the repository is for, and who else's text it must not get
    named     the objects that dvc.lock and the .dvc files name, with the output each belongs to
    looking   what of them is missing in a remote, or damaged there
    mending   sound copies sent again; what nobody here has taken out, so that others can send it
    door      `spanwise remote check` and `spanwise remote mend`
"""
