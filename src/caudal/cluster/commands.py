"""The commands that messages name, as they are typed where the cluster runs."""

import shlex

from caudal.cluster.folder import Cluster

_COMPOSED = {"up": "docker compose up -d", "down": "docker compose down"}


def command(cluster: Cluster, words: str, host: str = "") -> str:
    """Return the command for these words after `caudal`; `host`: where it is typed, if not here.

    Containers are started and stopped by compose, which knows how they are made; all else is told
    to its service `admin`, which reaches the engine.
    """
    if cluster.settings.launcher == "docker":
        return _COMPOSED.get(words, f"docker compose run --rm admin {words}")
    if words.startswith("token"):  # the same on every host
        return f"caudal {words} --dir {shlex.quote(str(cluster.folder))}"
    return f"caudal {words} {cluster.options_on(host) if host else cluster.options}"
