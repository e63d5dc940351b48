"""The time of a training step on several ranks, from when each bucket of gradients is ready and what a network needs for it.

Compute is one clock, each direction of a link another: a collective begins when its bucket is ready and the one before it is over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """Rates in bytes a second and direction, latencies in seconds for one message."""

    name: str
    in_node: float  # of each GPU to the others of its machine
    between: float  # of each machine to the others
    in_node_latency: float
    between_latency: float


@dataclass(frozen=True)
class Bucket:
    bytes: int
    owner: int  # -1: every rank gets the sum
    ready: float  # share of backward after which it is complete


@dataclass(frozen=True)
class Step:
    """What one rank does in a step."""

    forward: float  # seconds
    backward: float
    update: float  # of all parameters
    weight_bytes: int  # of the trained weights, in the dtype in which owners send them
    buckets: list[Bucket]


RANKS_A_NODE = 8
PARCEL_BYTES = 16 << 20  # of weights, train/shard/shards.cpp


def slowest(network: Network, ranks: int) -> tuple[float, float]:
    """Rate and latency of the slowest link of a ring over all ranks."""
    if ranks <= RANKS_A_NODE:
        return network.in_node, network.in_node_latency
    return min(network.in_node, network.between), network.between_latency


def all_reduce(size: float, ranks: int, network: Network) -> float:
    """The faster of a ring and of a pair of trees, which is how NCCL chooses (Sanders, Speck and Traeff, "Two-tree algorithms for full
    bandwidth broadcast, reduction and scan", 2009)."""
    rate, latency = slowest(network, ranks)
    nodes = max(1, ranks // RANKS_A_NODE)
    ring = 2 * (ranks - 1) / ranks * size / rate + 2 * (ranks - 1) * latency
    hops = math.log2(nodes) * network.between_latency + (min(ranks, RANKS_A_NODE) - 1) * network.in_node_latency
    return min(ring, 2 * size / rate + 2 * hops)


def one_way(size: float, ranks: int, network: Network) -> float:
    """A sum that one rank gets, or what one rank sends to all: a pipelined chain of all ranks."""
    rate, _ = slowest(network, ranks)
    nodes = max(1, ranks // RANKS_A_NODE)
    within = ranks - nodes
    return size / rate + (nodes - 1) * network.between_latency + within * network.in_node_latency


def step_seconds(step: Step, ranks: int, network: Network) -> float:
    """Of all ranks alike; the slowest GPU is as fast as the others."""
    over = 0.0
    for bucket in step.buckets:
        cost = all_reduce if bucket.owner < 0 else one_way
        over = max(over, step.backward * bucket.ready) + cost(bucket.bytes, ranks, network)
    end = step.forward + max(step.backward, over)
    if step.buckets[0].owner < 0:
        return end + step.update
    parcels = math.ceil(step.weight_bytes / PARCEL_BYTES)
    return end + step.update / ranks + parcels * one_way(step.weight_bytes / parcels, ranks, network)


def efficiency(step: Step, alone: float, ranks: int, network: Network) -> float:
    """Samples a second of all ranks over those of as many that need not speak to each other."""
    return alone / step_seconds(step, ranks, network)


def alone_seconds(step: Step) -> float:
    return step.forward + step.backward + step.update
