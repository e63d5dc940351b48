"""8-bit AdamW written down a second time, from the paper, in NumPy's float32, because the rounding is the subject. Ours is compared with
bitsandbytes itself; this one stands beside it for the mutants that bitsandbytes has no options for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch


def dynamic_map(signed: bool) -> np.ndarray:
    """The 256 numbers of the dynamic data type (Dettmers et al. 2022, section 2): [256] float32, growing."""
    numbers = [0.0, 1.0]
    for decade in range(7):
        edges = np.linspace(0.1, 1.0, 2 ** (decade if signed else decade + 1) + 1)
        middles = 10.0 ** (decade - 6) * (edges[:-1] + edges[1:]) / 2
        numbers += [*middles, *(-middles if signed else [])]
    return np.sort(np.array(numbers, np.float32))


def quantised(numbers: np.ndarray, table: np.ndarray, block: int = 256) -> tuple[np.ndarray, np.ndarray]:
    """Codes [blocks, block] and scales [blocks]: each block by its largest magnitude, each number by the nearest entry."""
    blocks = np.zeros((-(-numbers.size // block), block), np.float32)
    blocks.reshape(-1)[: numbers.size] = numbers.reshape(-1)
    scales = np.abs(blocks).max(1)
    shares = blocks / np.where(scales > 0, scales, 1)[:, None]
    distances = np.abs(shares[..., None].astype(np.float64) - table)
    return distances.argmin(-1).astype(np.uint8), scales


def dequantised(codes: np.ndarray, scales: np.ndarray, table: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers that codes and scales stand for."""
    numbers = (table[codes] * scales[:, None]).reshape(-1)[: int(np.prod(shape))]
    return numbers.reshape(shape)


class BlockwiseAdamW(torch.optim.Optimizer):
    """AdamW with both moments stored by `quantised` after each step; parameters below 4096 numbers keep theirs whole."""

    def __init__(self, params: Iterable[torch.Tensor], lr: float, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0, block: int = 256, unsigned: bool = True) -> None:
        super().__init__(params, {"lr": lr})
        self.betas, self.eps, self.weight_decay, self.block, self.steps = betas, eps, weight_decay, block, 0
        self.tables = {"m": dynamic_map(True), "v": dynamic_map(not unsigned)}

    def moment(self, p: torch.Tensor, name: str) -> np.ndarray:
        """As the next step sees it."""
        if name not in self.state[p]:
            return np.zeros(p.shape, np.float32)
        stored = self.state[p][name]
        return dequantised(*stored, self.tables[name], tuple(p.shape)) if isinstance(stored, tuple) else stored

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        self.steps += 1
        beta1, beta2 = self.betas
        for p in (p for group in self.param_groups for p in group["params"]):
            lr, g, x = self.param_groups[0]["lr"], p.grad.numpy(), p.numpy()
            moments = {"m": np.float32(beta1) * self.moment(p, "m") + np.float32(1 - beta1) * g,
                       "v": np.float32(beta2) * self.moment(p, "v") + np.float32(1 - beta2) * g * g}
            root = np.sqrt(moments["v"] / np.float32(1 - beta2**self.steps)) + np.float32(self.eps)
            change = np.float32(lr / (1 - beta1**self.steps)) * moments["m"] / root
            p.copy_(torch.from_numpy(x * np.float32(1 - lr * self.weight_decay) - change))
            for name, moment in moments.items():
                small = p.numel() < 4096
                self.state[p][name] = moment if small else quantised(moment, self.tables[name], self.block)
