"""Faults of a base's weight files."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import torch
from planted_faults import Fault, Place, header, weights
from safetensors.torch import load_file, save_file


def tensor(dtype: object = "F32", shape: object = (1,), offsets: object = (0, 4), **more: object) -> bytes:
    """A file with one tensor, described like this."""
    return header(json.dumps({"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}}), b"\0" * 4)


def changed(part: str, change: Callable[[dict], object]) -> Fault:
    """Other tensors of a part."""
    def plant(place: Place) -> list[str]:
        place.tensors(part, change)
        return []
    return plant


def cut(place: Place) -> list[str]:
    path = place.weights("unet")
    path.write_bytes(path.read_bytes()[:-4])
    return []


def reshaped(tensors: dict) -> None:
    tensors["decoder.conv_out.bias"] = tensors["decoder.conv_out.bias"].new_zeros(5)


def whole_numbers(tensors: dict) -> None:
    tensors["conv_in.bias"] = tensors["conv_in.bias"].to(torch.int32)


def one_too_many(tensors: dict) -> None:
    tensors["conv_in.scale"] = torch.zeros(1)


def only_a_pickle(place: Place) -> list[str]:
    path = place.weights("unet")
    path.rename(path.with_suffix(".bin"))
    path.with_suffix(".bin").write_bytes(b"PK\x03\x04" + b"\0" * 64)
    return []


def no_weights(place: Place) -> list[str]:
    place.weights("unet").unlink()
    return []


def weights_are_a_folder(place: Place) -> list[str]:
    path = place.weights("unet")
    path.unlink()
    path.mkdir()
    return []


def shards(change: Callable[[Place, dict], None]) -> Fault:
    """The UNet in two files and an index, whose map may be changed."""
    def plant(place: Place) -> list[str]:
        path = place.weights("unet")
        tensors = load_file(path)
        path.unlink()
        names = sorted(tensors)
        parts = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
        for file, part in parts.items():
            save_file({name: tensors[name] for name in part}, path.with_name(file))
        index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
        change(place, index)
        path.with_name("diffusion_pytorch_model.safetensors.index.json").write_text(json.dumps(index))
        return []
    return plant


def in_both(place: Place, index: dict) -> None:
    one, two = place.base / "unet" / "one.safetensors", place.base / "unet" / "two.safetensors"
    save_file({**load_file(two), **load_file(one)}, two)


def linked_outside(place: Place, index: dict) -> None:
    shard = place.base / "unet" / "one.safetensors"
    outside = place.folder / "elsewhere.safetensors"
    shard.rename(outside)
    shard.symlink_to(outside)


def other_shard(place: Place, index: dict) -> None:
    name = sorted(index["weight_map"])[0]
    index["weight_map"][name] = "two.safetensors"


HUGE = 2**62
WEIGHTS: dict[str, Fault] = {
    "tensor is missing": changed("unet", lambda tensors: tensors.pop("conv_in.weight")),
    "tensor of another shape": changed("vae", reshaped),
    "tensor of whole numbers": changed("unet", whole_numbers),
    "tensor too many": changed("unet", one_too_many),
    "no weights": no_weights,
    "weights are a folder": weights_are_a_folder,
    "only a pickle": only_a_pickle,
    "weights are empty": weights(b""),
    "weights are a pickle": weights(b"\x80\x02" + b"\0" * 64),
    "weights are a web page": weights(b"<!doctype html><title>404</title>"),
    "weights are a few bytes": weights(b"\1\2\3"),
    "weights with a huge header": weights(struct.pack("<Q", 2**40) + b" " * 64),
    "weights end in their header": weights(struct.pack("<Q", 5000) + b" " * 64),
    "weights without a header": weights(header("[]")),
    "weights end early": cut,
    "header that is not JSON": weights(header('{"a": }')),
    "tensor that is a number": weights(header('{"a": 5}')),
    "tensor that is a list": weights(header('{"a": []}')),
    "tensor with a text as shape": weights(tensor(shape="1")),
    "tensor with a number below zero": weights(tensor(shape=[-1])),
    "tensor with a fraction": weights(tensor(shape=[1.5])),
    "tensor with an object inside": weights(tensor(shape=[{}])),
    "tensor twice": weights(header('{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "a": {}}', b"\0" * 4)),
    "metadata with a key twice": weights(header('{"__metadata__": {"a": "b", "a": "b"}}')),
    "tensor with an unknown field": weights(tensor(color="red")),
    "tensor with a field twice": weights(header('{"a": {"dtype": "F32", "dtype": "F32"}}')),
    "tensor without a field": weights(header('{"a": {"dtype": "F32", "shape": [1]}}', b"\0" * 4)),
    "tensor with three offsets": weights(tensor(offsets=[0, 4, 8])),
    "tensor with one offset": weights(tensor(offsets=[0])),
    "tensor of an unknown dtype": weights(tensor(dtype="F4")),
    "tensor of a dimension that is too long": weights(header('{"a": {"dtype": "F32", "shape": [18446744073709551615]}}')),
    "tensor of too many numbers": weights(tensor(shape=[HUGE, HUGE])),
    "tensor of too many dimensions": weights(tensor(shape=[1] * 65)),
    "tensor of another size": weights(tensor(shape=[2])),
    "tensors with a gap": weights(header('{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}', b"\0" * 8)),
    "shard that is not there": shards(lambda place, index: (place.base / "unet" / "one.safetensors").unlink()),
    "shard outside of the model": shards(linked_outside),
    "shards with a tensor twice": shards(in_both),
    "index of another shard": shards(other_shard),
    "index without a map": shards(lambda place, index: index.update(weight_map=[])),
    "index of a file elsewhere": shards(lambda place, index: index["weight_map"].update({"conv_in.bias": "../x"})),
}
