"""A Slurm whose partitions differ in all that `setup` asks about: types, groups, accounts, QoS."""

from __future__ import annotations

from dataclasses import dataclass

from .accounted_slurm import AccountedSlurm
from .slurm_site import GPUS

USER = "nobody"
PARTITIONS = (
    ("mixed", "g1,a1", "MaxTime=1-00:00:00 DefaultTime=01:00:00"),
    ("parent", "g1,g2", "MaxTime=00:30:00 AllowAccounts=phys"),
    ("chem", "g1,g2", "MaxTime=04:00:00 AllowAccounts=chem"),
    ("private", "g1", "MaxTime=00:30:00 AllowGroups=daemon"),
    ("one", "a1", "MaxTime=02:00:00 QOS=single"),
    ("closed", "g1", "MaxTime=02:00:00 State=DOWN"),
    ("long", "a1", "MaxTime=UNLIMITED AllowQos=long"),
)


@dataclass
class DescribedSlurm(AccountedSlurm):
    """Two types of GPU, two accounts of one user, one partition for each thing to find out."""

    gpu_nodes: int = 2
    cpu_nodes: int = 1

    @property
    def nodes(self) -> list[str]:
        return [*super().nodes, "a1"]

    def settings(self) -> dict[str, object]:
        return super().settings() | {
            "AccountingStorageEnforce": "associations,limits,qos",
            "AccountingStorageTRES": "gres/gpu",
            "EnforcePartLimits": "ALL",
        }

    def write_config(self) -> None:
        super().write_config()
        config, gres = self.base / "etc/slurm.conf", self.base / "etc/gres.conf"
        lines = config.read_text().splitlines()
        lines = [
            f"{line} Gres=gpu:a100:2 MemSpecLimit=1000" if line.startswith("NodeName=a1 ") else line
            for line in lines
        ]
        lines += [f"PartitionName={name} Nodes={nodes} {rest}" for name, nodes, rest in PARTITIONS]
        config.write_text("\n".join(lines) + "\n")
        device = self.base / f"dev/nvidia[0-{GPUS // 2 - 1}]"
        gres.write_text(f"{gres.read_text()}NodeName=a1 Name=gpu Type=a100 File={device}\n")

    def start_slurmdbd(self) -> None:
        super().start_slurmdbd()
        for words in (
            "add qos single MaxWall=01:00:00",
            "add qos long",
            "add account phys Cluster=testing",
            "add account lab1 Cluster=testing parent=phys",
            "add account chem Cluster=testing",
            f"add user {USER} Account=lab1 Cluster=testing DefaultAccount=lab1",
            f"add user {USER} Account=chem Cluster=testing",
            f"modify user {USER} set qos=normal,long",
        ):
            self.run("sacctmgr", "-i", *words.split())

    def start_controller(self) -> None:
        super().start_controller()
        # The controller tells the database which resources there are.
        limit = "modify qos single set MaxTRESPerUser=gres/gpu=1"
        self.wait(lambda: "Modified" in self.run("sacctmgr", "-i", *limit.split(), check=False))
