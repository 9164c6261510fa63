"""Certificates of one cluster: a private authority that signs three roles and is then forgotten."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..host.private_files import write_private

BACK = dt.timedelta(days=1)
"""Time that certificates reach back: clocks of nodes differ."""
SERVES = ExtendedKeyUsageOID.SERVER_AUTH
CALLS = ExtendedKeyUsageOID.CLIENT_AUTH
ROLES = {
    # Scheduler and workers both listen and call; a client's certificate cannot be used to listen,
    # so who holds only that cannot pose as a scheduler.  Dask itself compares no names.
    "scheduler": (SERVES, CALLS),
    "worker": (SERVES, CALLS),
    "client": (CALLS,),
}


def make_certificates(directory: Path, *, cluster: str, seconds: float) -> None:
    """Write ``ca.pem`` and a certificate and key for each role, mode 0600.

    The authority's own key never touches the disk, so nobody can sign a fourth certificate.

    Parameters
    ----------
    directory
        An existing private directory.
    cluster
        The cluster's id, put into the names.
    seconds
        How long from now the certificates are to be valid.
    """
    now = dt.datetime.now(dt.UTC)
    start, end = now - BACK, now + dt.timedelta(seconds=seconds)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    ca_name = _name(f"gpucluster {cluster}")
    authority = (
        _builder(ca_name, ca_name, ca_key, start, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_use(signs=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    write_private(directory / "ca.pem", authority.public_bytes(serialization.Encoding.PEM))
    for role, usages in ROLES.items():
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_name(f"gpucluster {cluster} {role}"), ca_name, key, start, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=True)
            .add_extension(_use(signs=False), critical=True)
            .add_extension(issued_by, critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        write_private(directory / f"{role}-cert.pem", pem)
        write_private(
            directory / f"{role}-key.pem",
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _use(*, signs: bool) -> x509.KeyUsage:
    """Return the uses of a key; with these and key identifiers it passes Python 3.13's checks."""
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    start: dt.datetime,
    end: dt.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
