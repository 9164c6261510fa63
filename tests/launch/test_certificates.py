"""Certificates in real handshakes: the cluster's own get in, nobody else does."""

from __future__ import annotations

import datetime as dt
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from jupyter_gpucluster.launch.certificates import ROLES, make_certificates

DAY = 86400.0


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("own")
    make_certificates(directory, cluster="abc123", seconds=DAY)
    return directory


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("foreign")
    make_certificates(directory, cluster="xyz789", seconds=DAY)
    return directory


def context(purpose: ssl.Purpose, directory: Path, role: str, authority: Path) -> ssl.SSLContext:
    """Make a context as distributed does, with the checks that Python 3.13 turns on."""
    made = ssl.create_default_context(purpose=purpose, cafile=str(authority / "ca.pem"))
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    made.verify_mode = ssl.CERT_REQUIRED
    made.check_hostname = False
    if role:
        certificate, key = directory / f"{role}-cert.pem", directory / f"{role}-key.pem"
        made.load_cert_chain(str(certificate), str(key))
    return made


def shake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Let two ends meet in memory; raises `ssl.SSLError` where one refuses the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    calling = client.wrap_bio(to_client, to_server, server_side=False)
    pending = [calling.do_handshake, serving.do_handshake]
    for _ in range(10):
        for step in list(pending):
            try:
                step()
            except ssl.SSLWantReadError:
                continue
            pending.remove(step)
    assert not pending
    # Under TLS 1.3 a client learns only now that the server has refused it.
    calling.write(b"hello")
    assert serving.read() == b"hello"
    serving.write(b"yes")
    assert calling.read() == b"yes"


def meet(server: tuple[Path, str], client: tuple[Path, str], own: Path) -> None:
    shake(
        context(ssl.Purpose.CLIENT_AUTH, *server, own),
        context(ssl.Purpose.SERVER_AUTH, *client, own),
    )


@pytest.mark.parametrize("server", ["scheduler", "worker"])
@pytest.mark.parametrize("client", ["scheduler", "worker", "client"])
def test_each_role_may_call_scheduler_and_workers(own: Path, server: str, client: str) -> None:
    meet((own, server), (own, client), own)


@pytest.mark.parametrize("client", ["scheduler", "worker", "client"])
def test_a_client_s_certificate_cannot_serve(own: Path, client: str) -> None:
    with pytest.raises(ssl.SSLError, match="purpose"):
        meet((own, "client"), (own, client), own)


@pytest.mark.parametrize("role", sorted(ROLES))
def test_another_cluster_s_certificates_do_not_get_in(own: Path, foreign: Path, role: str) -> None:
    with pytest.raises(ssl.SSLError):
        meet((own, "scheduler"), (foreign, role), own)


def test_no_role_can_sign_a_certificate(own: Path) -> None:
    for role in ROLES:
        certificate = x509.load_pem_x509_certificate((own / f"{role}-cert.pem").read_bytes())
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        use = certificate.extensions.get_extension_for_class(x509.KeyUsage)
        assert not constraints.value.ca
        assert not use.value.key_cert_sign


def test_the_authority_s_own_key_is_nowhere_on_disk(own: Path) -> None:
    authority = x509.load_pem_x509_certificate((own / "ca.pem").read_bytes())
    names = {path.name for path in own.iterdir()}
    assert names == {"ca.pem"} | {
        f"{role}-{part}.pem" for role in ROLES for part in ("cert", "key")
    }
    for path in own.glob("*-key.pem"):
        key = load_pem_private_key(path.read_bytes(), None)
        assert key.public_key() != authority.public_key()


def test_files_are_their_owner_s_alone(own: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in own.iterdir()} == {0o600}


@pytest.mark.parametrize("name", ["ca.pem", "scheduler-cert.pem", "client-cert.pem"])
def test_certificates_reach_a_day_back_and_as_far_as_asked(own: Path, name: str) -> None:
    certificate = x509.load_pem_x509_certificate((own / name).read_bytes())
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lifetime == dt.timedelta(days=2)


def test_names_tell_cluster_and_role_and_serials_differ(own: Path) -> None:
    found = [x509.load_pem_x509_certificate(path.read_bytes()) for path in own.glob("*-cert.pem")]
    assert sorted(c.subject.rfc4514_string() for c in found) == [
        f"CN=gpucluster abc123 {role}" for role in sorted(ROLES)
    ]
    assert len({certificate.serial_number for certificate in found}) == len(ROLES)
