"""One record: what the parts of a program asked of the recorded GPU."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Part:
    """Counts of one part of a program. Our kernels count once a launch, LibTorch's operators once a call."""

    operators: dict[str, list[int]] = field(default_factory=dict)  # name -> calls, bytes read and written
    layout_copies: dict[str, list[int]] = field(default_factory=dict)  # what and shape -> calls, bytes
    waits: dict[str, int] = field(default_factory=dict)  # what the host waited for -> times
    copies_to_host: int = 0
    copies_to_device: int = 0
    live_bytes: int = 0  # of the GPU's memory, when the part ended
    peak_bytes: int = 0  # the most at any time of it

    @property
    def count(self) -> int:
        """Operators that are no view and no allocation."""
        return sum(calls for calls, _ in self.operators.values())

    @property
    def bytes(self) -> int:
        """Read and written by them."""
        return sum(size for _, size in self.operators.values())

    @property
    def layouts(self) -> int:
        """Copies that only change the memory order; they are among the operators."""
        return sum(calls for calls, _ in self.layout_copies.values())

    @property
    def wait_count(self) -> int:
        """How often the host waited."""
        return sum(self.waits.values())


Record = dict[str, Part]


def read_record(parts: dict[str, dict]) -> Record:
    """From the library's JSON."""
    return {name: Part(**part) for name, part in parts.items()}
