"""Small ONNX networks for the tests of faces: no foreign licence, no download, and outputs that are known beforehand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

SIDE = 256  # px of the images that the detector is made for
# A face in such an image: left, top, width, height; eyes, nose and corners of the mouth, the image's left first. px.
BOX = (70.0, 60.0, 110.0, 120.0)
LANDMARKS = [(98.0, 108.0), (150.0, 102.0), (128.0, 134.0), (108.0, 158.0), (152.0, 153.0)]
VARIANCES = (0.1, 0.2)


def smooth_image(seed: int, side: int = SIDE) -> np.ndarray:
    """[side, side, 3] uint8 without edges, so that another way to interpolate changes hardly anything."""
    small = np.random.default_rng(seed).integers(0, 256, (12, 12, 3), np.uint8)
    return np.asarray(Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC))


def save(nodes: list, inputs: list, outputs: list, weights: dict[str, np.ndarray], path: Path) -> Path:
    graph = helper.make_graph(nodes, "network", inputs, outputs,
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def value(name: str, shape: list) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def recognizer(path: Path, normalises_itself: bool = False, shape: tuple = (1, 3, 112, 112)) -> Path:
    """A "face recognition network": the mean colours of 7 x 7 fields of the face it is given, 147 numbers."""
    nodes, weights, start = [], {}, "data"
    if normalises_itself:  # as MXNet's exports begin
        weights = {"mean": np.array([127.5], np.float32), "factor": np.array([1 / 128], np.float32)}
        nodes = [helper.make_node("Sub", ["data", "mean"], ["centred"]),
                 helper.make_node("Mul", ["centred", "factor"], ["scaled"])]
        start = "scaled"
    nodes += [helper.make_node("AveragePool", [start], ["fields"], kernel_shape=[16, 16], strides=[16, 16]),
              helper.make_node("Flatten", ["fields"], ["embedding"])]
    return save(nodes, [value("data", list(shape))], [value("embedding", [1, 147])], weights, path)


def priors() -> np.ndarray:
    """[N, 4] centre and size of YuNet's prior boxes in an image of SIDE x SIDE px, as shares of it (Yu et al., 2021)."""
    boxes = []
    for step, sizes in ((8, (10, 16, 24)), (16, (32, 48)), (32, (64, 96)), (64, (128, 192, 256))):
        for row in range(SIDE // step):
            for column in range(SIDE // step):
                boxes += [((column + 0.5) * step / SIDE, (row + 0.5) * step / SIDE, size / SIDE, size / SIDE)
                          for size in sizes]
    return np.array(boxes)


def detector(path: Path, box: tuple[float, ...] = BOX, landmarks: list[tuple[float, float]] = LANDMARKS) -> Path:
    """A "YuNet" that sees one face in every image: box (left, top, width, height) and five landmarks, px."""
    known = priors()
    middle = np.array([box[0] + box[2] / 2, box[1] + box[3] / 2]) / SIDE
    chosen = int(np.argmin(np.abs(known[:, :2] - middle).sum(1) + np.abs(known[:, 2:] - box[2] / SIDE).sum(1)))
    prior = known[chosen]
    offsets = np.zeros((len(known), 14), np.float32)
    offsets[chosen, :2] = (middle - prior[:2]) / (VARIANCES[0] * prior[2:])
    offsets[chosen, 2] = math.log(box[2] / SIDE / prior[2]) / VARIANCES[0]
    offsets[chosen, 3] = math.log(box[3] / SIDE / prior[3]) / VARIANCES[1]
    for i, point in enumerate(landmarks):
        offsets[chosen, 4 + 2 * i:6 + 2 * i] = (np.array(point) / SIDE - prior[:2]) / (VARIANCES[0] * prior[2:])
    confidence = np.zeros((len(known), 2), np.float32)
    confidence[chosen, 1] = 0.99
    overlap = np.zeros((len(known), 1), np.float32)
    overlap[chosen] = 0.98
    nodes = [helper.make_node("GlobalAveragePool", ["input"], ["pooled"]),
             helper.make_node("Flatten", ["pooled"], ["means"])]
    weights, outputs = {}, []
    for name, wanted in (("loc", offsets), ("conf", confidence), ("iou", overlap)):
        weights[f"{name}_w"] = np.zeros((wanted.size, 3), np.float32)
        weights[f"{name}_b"] = wanted.reshape(-1)
        weights[f"{name}_shape"] = np.array(wanted.shape, np.int64)
        nodes += [helper.make_node("Gemm", ["means", f"{name}_w", f"{name}_b"], [f"{name}_flat"], transB=1),
                  helper.make_node("Reshape", [f"{name}_flat", f"{name}_shape"], [name])]
        outputs.append(value(name, list(wanted.shape)))
    return save(nodes, [value("input", [1, 3, SIDE, SIDE])], outputs, weights, path)
