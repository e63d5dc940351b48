"""Runs the product's own loops on the recorded GPU: build/gpu/operator_trace, with a stub of NVIDIA's driver library."""

from __future__ import annotations

import copy
import json
import os
import re
import socket
import subprocess
from pathlib import Path

from .record import Record, read_record

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "gpu" / "operator_trace"
LIBRARY = ROOT / "build" / "gpu" / "libsdtune_recorded_gpu.so"
PHOTOS = ROOT / "examples" / "me"


def is_built() -> bool:
    """Whether the build has both; it needs SDTUNE_CUDA=ON."""
    return PROGRAM.is_file() and LIBRARY.is_file()


class Product:
    """The product on a machine whose driver lists one GPU."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        driver = folder / "driver"
        driver.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(driver / "libcuda.so.1"),
                        str(ROOT / "tests" / "gpu" / "driver_stub.c")], check=True)
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "SDTUNE_STUB_GPUS": "NVIDIA L4=8.9",
                            "SDTUNE_STUB_CUDA": "13000", "CUDA_VISIBLE_DEVICES": "0", "SDTUNE_CUDA_LIBRARY": str(LIBRARY),
                            "OMP_NUM_THREADS": "1", "TORCH_SHOW_CPP_STACKTRACES": "0"}
        self.environment.pop("SDTUNE_KERNELS", None)
        self.runs = 0

    def _run(self, words: list[str], ranks: int = 1) -> Record:
        """What rank 0 says."""
        environments = [self.environment]
        if ranks > 1:
            with socket.socket() as held:
                held.bind(("127.0.0.1", 0))
                port = held.getsockname()[1]
            environments = [{**self.environment, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
                             "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
                            for rank in range(ranks)]
        peers = [subprocess.Popen([str(PROGRAM), *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for environment in environments[1:]]
        try:
            done = subprocess.run([str(PROGRAM), *words], env=environments[0], capture_output=True, text=True, check=False)
        finally:
            for peer in peers:
                peer.kill()
                peer.wait()
        if done.returncode != 0:
            raise RuntimeError(f"operator_trace {' '.join(words)}: {done.stderr.strip()}")
        return read_record(json.loads(done.stdout.splitlines()[-1]))

    def train(self, base: Path, steps: int = 4, ranks: int = 1, **options: object) -> Record:
        """Options of `sdtune train`. Parts "step 0" ... of the first `steps` steps of rank 0, without an export at the end."""
        self.runs += 1
        given = {"base": base, "images": PHOTOS, "output": self.folder / f"run{self.runs}", "device": "cuda:0",
                 "max_train_steps": 1000, "until": steps, **options}
        return self._run(["train", *(f"{name}={str(value).lower() if isinstance(value, bool) else value}"
                                     for name, value in given.items())], ranks)

    def with_gpus(self, gpus: str) -> Product:
        """The same on a machine whose driver lists these: "NVIDIA T4=7.5;NVIDIA L4=8.9"."""
        other = copy.copy(self)
        count = len(gpus.split(";"))
        other.environment = {**self.environment, "SDTUNE_STUB_GPUS": gpus, "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(count)))}
        other.folder = self.folder / re.sub(r"\W", "", gpus)
        other.folder.mkdir(exist_ok=True)
        return other

    def device(self, word: str) -> dict[str, int]:
        """Which GPU is the thread's own once `word` was chosen."""
        done = subprocess.run([str(PROGRAM), "device", word], env=self.environment, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def sample(self, base: Path, dtype: str = "bfloat16", **options: object) -> Record:
        """Options of `sdtune sample`: parts "before denoising", "denoising", "after denoising"."""
        return self._run(["sample", str(base), dtype, *(f"{name}={value}" for name, value in options.items())])
