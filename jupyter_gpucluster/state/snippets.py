"""Code that connects a notebook to a cluster, without any secret in it."""

from __future__ import annotations

from ..core.cluster import ENDED
from ..core.errors import ClusterConflict
from .view import Look


def client_code(look: Look) -> dict[str, str]:
    """Return the forms ``connect`` and ``magic`` (need this package) and ``dask`` (Dask alone).

    Raises
    ------
    ClusterConflict
        The cluster has ended.
    """
    name = look.record.name
    if look.record.phase in ENDED:
        raise ClusterConflict(f"Cluster {name} has ended.", hint="Start another one.")
    return {
        "connect": f'from jupyter_gpucluster import connect\n\nclient = connect("{name}")\nclient',
        "magic": f"%load_ext jupyter_gpucluster\n%gpucluster connect {name}\nclient",
        "dask": "\n".join(_plain_dask(look)),
    }


def _plain_dask(look: Look) -> list[str]:
    scheduler_file = str(look.directory.scheduler_file)
    if not look.record.spec.encrypted:
        return [
            "from distributed import Client",
            "",
            f"client = Client(scheduler_file={scheduler_file!r})",
            "client",
        ]
    tls = look.directory.tls
    return [
        "from distributed import Client",
        "from distributed.security import Security",
        "",
        "security = Security(",
        "    require_encryption=True,",
        f"    tls_ca_file={str(tls / 'ca.pem')!r},",
        f"    tls_client_cert={str(tls / 'client-cert.pem')!r},",
        f"    tls_client_key={str(tls / 'client-key.pem')!r},",
        ")",
        f"client = Client(scheduler_file={scheduler_file!r}, security=security)",
        "client",
    ]
