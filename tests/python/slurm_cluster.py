"""A SLURM cluster on one machine: Debian's slurmctld and two slurmd, each node a host of test_two_hosts.py."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

from test_two_hosts import Host

# A preempted job waits for `cred_expire` before it starts again; PARTITION high preempts low.
CONFIGURATION = """\
ClusterName=sdtune
SlurmctldHost=host0({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
KillWait=30
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
NodeName=host0 NodeAddr={address} CPUs=2
NodeName=host1 NodeAddr={other} CPUs=2
PartitionName=low Nodes=host[0-1] Default=YES PriorityTier=1 GraceTime=60
PartitionName=high Nodes=host[0-1] PriorityTier=2 PreemptMode=OFF
"""
SECONDS = 180


class Cluster:
    def __init__(self, hosts: list[Host], folder: Path) -> None:
        self.hosts, self.folder = hosts, folder
        self.daemons: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Returns when both nodes are idle."""
        for part in ("etc", "state"):
            (self.folder / part).mkdir()
        configuration = CONFIGURATION.format(folder=self.folder, address=self.hosts[0].address, other=self.hosts[1].address)
        (self.folder / "etc/slurm.conf").write_text(configuration)
        names = "".join(f"{host.address} host{host.index}\n" for host in self.hosts)
        (self.folder / "names").write_text(f"127.0.0.1 localhost\n{names}")
        for host in self.hosts:
            host.do("mount", "--bind", str(self.folder / "etc"), "/etc/slurm")
            host.do("mount", "--bind", str(self.folder / "names"), "/etc/hosts")
        key = self.folder / "munge.key"
        key.write_bytes(bytes(range(256)))
        key.chmod(0o400)
        # --force: the folder of a test does not belong to the user munge.
        of_munge = [f"--{name}={self.folder}/munge.{name.split('-')[0]}" for name in ("socket", "pid-file", "log-file", "seed-file")]
        self._start(["munged", "--foreground", "--force", f"--key-file={key}", *of_munge])
        self._start(self.hosts[0].inside("slurmctld", "-D", "-i"))
        for host in self.hosts:
            self._start(host.inside("slurmd", "-D", "-N", f"host{host.index}"))
        self.wait("both nodes are idle", lambda: self.say("sinfo", "-h", "-p", "low", "-o", "%T %D").strip() == "idle 2")

    def _start(self, words: list[str]) -> None:
        self.daemons.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def end(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait()

    def say(self, *words: str, **variables: str) -> str:
        """Of one of SLURM's commands, as a user on the first node gives it; "" while the controller does not answer."""
        done = subprocess.run(self.hosts[0].inside("env", *(f"{name}={value}" for name, value in variables.items()), *words), text=True,
                              capture_output=True, cwd="/")
        return done.stdout

    def submit(self, *words: str, **variables: str) -> str:
        """Of sbatch; the number of the job."""
        said = self.say("sbatch", "--parsable", *words, **variables).strip()
        assert re.fullmatch(r"\d+", said), (said, self.logs())
        return said

    def state(self, job: str) -> str:
        return self.facts(job).get("JobState", "")

    def facts(self, job: str) -> dict[str, str]:
        """What `scontrol show job` prints."""
        return dict(re.findall(r"(\w+)=(\S+)", self.say("scontrol", "show", "job", job)))

    def wait(self, what: str, is_so, seconds: float = SECONDS) -> None:  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, f"{what}: never came; {self.say('squeue', '-l')}{self.logs()}"
            time.sleep(0.1)

    def logs(self) -> str:
        """The last lines of each."""
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in sorted(self.folder.glob("*.log")))
