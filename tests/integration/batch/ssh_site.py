"""A private sshd on loopback that stands for all nodes: throwaway keys, own configuration."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

UP_SECONDS = 30.0


@dataclass
class SshSite:
    """The daemon's files lie under one directory; ``config`` is what clients need."""

    base: Path
    hosts: Sequence[str]
    port: int

    @property
    def config(self) -> Path:
        """Configuration of ssh that leads each of the hosts here."""
        return self.base / "config"

    @property
    def pid(self) -> int:
        """The daemon."""
        return int((self.base / "sshd.pid").read_text())

    def start(self) -> None:
        """Make keys and start the daemon; return when it answers."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        for name in ("host", "user"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.base / name)]
            subprocess.run(argv, check=True, timeout=30)
        shutil.copy(self.base / "user.pub", self.base / "authorized")
        key = (self.base / "host.pub").read_text()
        (self.base / "known").write_text(f"nodes {key}")
        (self.base / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.base}/host\n"
            f"PidFile {self.base}/sshd.pid\nAuthorizedKeysFile {self.base}/authorized\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
            "MaxStartups 100\n"
        )
        self.config.write_text(
            f"Host {' '.join(self.hosts)}\n  HostName 127.0.0.1\n  Port {self.port}\n"
            f"  IdentityFile {self.base}/user\n  IdentitiesOnly yes\n  HostKeyAlias nodes\n"
            f"  UserKnownHostsFile {self.base}/known\n  LogLevel ERROR\n"
        )
        argv = ["/usr/sbin/sshd", "-f", str(self.base / "sshd_config")]
        subprocess.run([*argv, "-E", str(self.base / "log")], check=True, timeout=30)
        deadline = time.monotonic() + UP_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if time.monotonic() > deadline:
                raise RuntimeError((self.base / "log").read_text())
            time.sleep(0.05)

    def stop(self) -> None:
        """End the daemon; sessions end with their commands."""
        with contextlib.suppress(OSError, ValueError):
            os.kill(self.pid, signal.SIGTERM)
