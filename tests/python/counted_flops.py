"""PyTorch's counter of floating-point operations, with attention on a CPU, which it leaves out by itself."""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu"


def forward(q: torch.Size, k: torch.Size, v: torch.Size, *_: object, **__: object) -> int:
    return sdpa_flop_count(q, k, v)


def backward(dy: torch.Size, q: torch.Size, k: torch.Size, v: torch.Size, *_: object, **__: object) -> int:
    return sdpa_backward_flop_count(dy, q, k, v)


def flop_counter() -> FlopCounterMode:
    """It counts the products of attention as it counts those of a GPU's."""
    aten = torch.ops.aten
    return FlopCounterMode(display=False, custom_mapping={aten._scaled_dot_product_flash_attention_for_cpu: forward,
                                                          aten._scaled_dot_product_flash_attention_for_cpu_backward: backward})
