"""Run a single-node Slurm cluster for a test, with its own daemons, ports, key and folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
PATIENCE = 60  # seconds allowed for the daemons to start, and again to stop; each normally takes two

CONF = """\
ClusterName=course
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ctld}
SlurmdPort={slurmd}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
FirstJobId={job}
NodeName=localhost NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=ALL Default=YES
"""


def missing() -> list[str]:
    """Return the names of the Slurm and munge programs that aren't installed."""
    return [program for program in PROGRAMS if not find_program(program)]


def find_program(program: str) -> str | None:
    """Return a program's path, or None. Daemons are in sbin, which isn't on a regular user's PATH."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


def free_ports(count: int, low: int = 20000, high: int = 30000) -> list[int]:
    """Return `count` unused ports, by default from a range from which the system doesn't assign ports."""
    ports = []
    for port in range(low + os.getpid() * 7 % (high - low - 100), high):
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError(f"fewer than {count} free ports from {low} to {high}")


def left_over(folder: str) -> list[int]:
    """Return the IDs of the processes whose command line or environment contains the folder's path."""
    ids = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's process, or one that has ended
            if folder.encode() in (path / "cmdline").read_bytes() + (path / "environ").read_bytes():
                ids.append(int(path.name))
    return ids


def wait_for(condition: Callable[[], object], what: str, folder: Path, patience: float = PATIENCE) -> None:
    """Wait until a condition is true.

    After `patience` seconds, raise TimeoutError with `what` (the name of the current step) and the daemons' logs.
    """
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            logs = "\n".join(f"{path.name}:\n{path.read_text()[-2000:]}" for path in sorted(folder.glob("*.log")))
            raise TimeoutError(f"{what}: timed out after {patience} s\n{logs}")
        time.sleep(0.2)


@contextlib.contextmanager
def one_node() -> Iterator[dict[str, str]]:
    """Start the daemons, yield an environment for sbatch and srun, then stop the daemons and remove their folder."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)  # munge's socket must be reachable
    daemons: list[subprocess.Popen] = []
    # JAX derives its port from the job's ID: 61440 plus the ID modulo 4096.
    jax_port, *_ = free_ports(1, 61440, 65536)
    ctld, slurmd = free_ports(2)
    host, user = socket.gethostname().partition(".")[0], pwd.getpwuid(os.geteuid()).pw_name
    conf = CONF.format(folder=folder, host=host, user=user, ctld=ctld, slurmd=slurmd, job=4096 + jax_port - 61440)
    # Slurm 23.02 and later need this setting to leave control groups alone, but 22.05 doesn't recognise it.
    version = re.search(
        r"(\d+)\.(\d+)", subprocess.run([find_program("slurmd"), "-V"], capture_output=True, text=True).stdout
    )
    cgroup = "CgroupPlugin=disabled\n" if tuple(map(int, version.groups())) >= (23, 2) else ""
    for name, text in (("slurm.conf", conf), ("cgroup.conf", cgroup), ("munge.key", os.urandom(512).hex())):
        (folder / name).write_text(text)
    (folder / "munge.key").chmod(0o600)
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
    environment["SLURM_CONF"] = str(folder / "slurm.conf")

    def start(program: str, *options: str) -> None:
        with open(folder / f"{program}.log", "w") as log:
            daemons.append(subprocess.Popen([find_program(program), *options], env=environment, stdout=log, stderr=log))

    def command_output(*command: str) -> str:
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE).stdout

    try:
        files = [f"--{name}={folder}/munge.{name}" for name in ("socket", "pid-file", "seed-file")]
        start("munged", "--foreground", "--force", "--num-threads=1", f"--key-file={folder}/munge.key", *files)
        wait_for((folder / "munge.socket").exists, "starting munged", folder)
        start("slurmctld", "-D", "-f", environment["SLURM_CONF"])
        start("slurmd", "-D", "-f", environment["SLURM_CONF"])
        wait_for(lambda: "idle" in command_output("sinfo", "--noheader", "--format=%T"), "starting the node", folder)
        yield environment
    finally:
        try:
            if len(daemons) == 3:
                command_output("scancel", f"--user={user}")
                wait_for(lambda: not command_output("squeue", "--noheader"), "ending the jobs", folder)
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
            for daemon in daemons:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    daemon.wait(timeout=PATIENCE)
                daemon.kill()
                daemon.wait()
            shutil.rmtree(folder)
