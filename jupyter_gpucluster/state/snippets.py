"""Code that connects a notebook to a cluster, without any secret in it."""

from __future__ import annotations

from ..core.cluster import ENDED
from ..core.errors import ClusterConflict
from .view import Look

PLAIN = """\
from distributed import Client

client = Client(scheduler_file={file!r})
client"""
ENCRYPTED = """\
from distributed import Client
from distributed.security import Security

security = Security(
    require_encryption=True,
    tls_ca_file={ca!r},
    tls_client_cert={cert!r},
    tls_client_key={key!r},
)
client = Client(scheduler_file={file!r}, security=security)
client"""


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
        "dask": _plain_dask(look),
    }


def _plain_dask(look: Look) -> str:
    file, tls = str(look.directory.scheduler_file), look.directory.tls
    if not look.record.spec.encrypted:
        return PLAIN.format(file=file)
    ca, cert, key = (str(tls / f"{name}.pem") for name in ("ca", "client-cert", "client-key"))
    return ENCRYPTED.format(file=file, ca=ca, cert=cert, key=key)
