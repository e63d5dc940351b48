"""Optimizers written down a second time, from their papers, as what ours are compared with. Double precision where the paper
leaves it open; the 8-bit one in NumPy's float32, because there the rounding is the subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, params: Iterable[torch.Tensor], lr: float, betas: tuple[float, float] = (0.9, 0.99),
                 weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].get("m", torch.zeros_like(p, dtype=torch.float64))
                direction = torch.sign(beta1 * m + (1 - beta1) * p.grad.double())
                p.copy_(p.double() - group["lr"] * (direction + group["weight_decay"] * p.double()))
                self.state[p]["m"] = beta2 * m + (1 - beta2) * p.grad.double()


class Prodigy(torch.optim.Optimizer):
    """Mishchenko & Defazio 2024, algorithm 4 (the Adam version), with the bias correction, the decoupled decay and the
    warm-up's safeguard of the authors' code."""

    D0 = 1e-6

    def __init__(self, params: Iterable[torch.Tensor], lr: float = 1.0, betas: tuple[float, float] = (0.9, 0.999),
                 beta3: float | None = None, eps: float = 1e-8, weight_decay: float = 0.0, use_bias_correction: bool = True,
                 safeguard_warmup: bool = True) -> None:
        super().__init__(params, {"lr": lr})
        self.betas, self.beta3 = betas, betas[1] ** 0.5 if beta3 is None else beta3
        self.eps, self.weight_decay = eps, weight_decay
        self.use_bias_correction, self.safeguard_warmup = use_bias_correction, safeguard_warmup
        self.d, self.numerator, self.steps = self.D0, 0.0, 0

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        beta1, beta2 = self.betas
        d, denominator = self.d, 0.0
        t = self.steps + 1
        correction = (1 - beta2**t) ** 0.5 / (1 - beta1**t) if self.use_bias_correction else 1.0
        rate = d * self.param_groups[0]["lr"] * correction
        if rate == 0:
            return
        self.numerator *= self.beta3
        parameters = [p for group in self.param_groups for p in group["params"]]
        for p in parameters:
            state, g, x = self.state[p], p.grad.double(), p.double()
            if not state:
                state.update(x0=x.clone(), m=torch.zeros_like(x), v=torch.zeros_like(x), s=torch.zeros_like(x))
            state["m"] = beta1 * state["m"] + (1 - beta1) * d * g
            state["v"] = beta2 * state["v"] + (1 - beta2) * d**2 * g**2
            self.numerator += d / self.D0 * rate * torch.sum(g * (state["x0"] - x)).item()
            state["s"] = self.beta3 * state["s"] + d / self.D0 * (d if self.safeguard_warmup else rate) * g
            denominator += state["s"].abs().sum().item()
        self.d = max(d, self.numerator / denominator)
        self.steps = t
        for p in parameters:
            state, x = self.state[p], p.double()
            x = x - self.weight_decay * rate * x
            p.copy_(x - rate * state["m"] / (state["v"].sqrt() + self.d * self.eps))


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
