"""sdtune-faces (app/faces): what it finds, and what it says whose face it is. The networks are made by hand, so that every number
is known beforehand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import face_networks
import numpy as np
import pytest
import torch
from face_networks import BOX, LANDMARKS, smooth_image
from PIL import Image
from program import ROOT, SDTUNE

FACES = SDTUNE.parent / "sdtune-faces"
ASTRONAUT = ROOT.parent / "shared" / "data" / "faces" / "astronaut.png"
# Where InsightFace's face_align puts eyes, nose and corners of the mouth, px of 112.
TEMPLATE = np.array([[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]])


def ask(arguments: list[object], *images: np.ndarray) -> tuple[list[dict], int]:
    """The lines it answers, and how it ended."""
    sent = b"".join(json.dumps({"width": image.shape[1], "height": image.shape[0]}).encode() + b"\n" + image.tobytes()
                    for image in images)
    ended = subprocess.run([str(FACES), *(str(word) for word in arguments)], input=sent, capture_output=True, check=False,
                           timeout=60)
    return [json.loads(line) for line in ended.stdout.splitlines()], ended.returncode


def similarity(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The matrix [2, 3] of rotation, scale and shift nearest to source -> target (Umeyama, 1991)."""
    source_mean, target_mean = source.mean(0), target.mean(0)
    u, sizes, vt = np.linalg.svd((target - target_mean).T @ (source - source_mean) / len(source))
    signs = np.diag([1.0, np.sign(np.linalg.det(u @ vt))])
    scale = (sizes * np.diag(signs)).sum() / ((source - source_mean) ** 2).sum(1).mean()
    matrix = scale * u @ signs @ vt
    return np.column_stack([matrix, target_mean - matrix @ source_mean])


def upright(image: np.ndarray, transform: np.ndarray, side: int = 112) -> np.ndarray:
    """[side, side, 3] float, by Pillow."""
    back = np.linalg.inv(np.vstack([transform, [0, 0, 1]]))
    # Pillow counts from corners of pixels, OpenCV from their middles.
    back[:2, 2] += 0.5 - back[:2, :2] @ np.array([0.5, 0.5])
    flat = Image.fromarray(image).transform((side, side), Image.Transform.AFFINE, back[:2].reshape(-1).tolist(),
                                              Image.Resampling.BILINEAR)
    return np.asarray(flat, dtype=np.float64)


def mean_fields(face: np.ndarray) -> np.ndarray:
    """What face_networks.recognizer gives, of length 1."""
    fields = ((face - 127.5) / 127.5).reshape(7, 16, 7, 16, 3).mean((1, 3)).transpose(2, 0, 1).reshape(-1)
    return fields / np.linalg.norm(fields)


@pytest.fixture(scope="module")
def yunet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return face_networks.detector(tmp_path_factory.mktemp("yunet") / "yunet.onnx")


def test_yunets_boxes_are_read_in_pixels(yunet: Path) -> None:
    lines, code = ask([yunet], smooth_image(0))
    assert code == 0 and lines[0] == {"ready": True}
    (face,) = lines[1]["faces"]
    assert [face[key] for key in ("left", "top", "width", "height")] == pytest.approx(BOX, abs=0.01)
    assert face["score"] == pytest.approx((0.99 * 0.98) ** 0.5, abs=1e-4)
    assert "embedding" not in lines[1]


@pytest.mark.parametrize("normalises_itself", [False, True])
def test_a_face_with_landmarks_is_turned_upright_before_it_is_recognized(yunet: Path, tmp_path: Path,
                                                                         normalises_itself: bool) -> None:
    """Against NumPy's similarity transform, Pillow's pixels and the network's formula, RGB, both ways to scale pixels."""
    network = face_networks.recognizer(tmp_path / "network.onnx", normalises_itself)
    images = [smooth_image(seed) for seed in (1, 2, 3)]
    lines, code = ask(["--recognizer", network, yunet], *images)
    assert code == 0, lines
    transform = similarity(np.array(LANDMARKS), TEMPLATE)
    for image, line in zip(images, lines[1:], strict=True):
        found = np.array(line["embedding"])
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)
        wanted = mean_fields(upright(image, transform))
        assert found @ wanted > 0.9995
        assert found @ mean_fields(upright(image[..., ::-1].copy(), transform)) < 0.95  # BGR would be seen


@pytest.mark.skipif(not ASTRONAUT.exists(), reason="the photo lies beside this checkout")
def test_without_landmarks_a_cascades_box_is_where_a_face_lies_in_the_template(tmp_path: Path) -> None:
    network = face_networks.recognizer(tmp_path / "network.onnx")
    image = np.asarray(Image.open(ASTRONAUT).convert("RGB").resize((384, 384)))
    cascade = Path("/usr/share/opencv4/haarcascades/haarcascade_frontalface_alt.xml")
    lines, code = ask(["--recognizer", network, cascade], image)
    assert code == 0, lines
    face = lines[1]["faces"][0]
    scale = 86 / max(face["width"], face["height"])
    middle = np.array([face["left"] + face["width"] / 2, face["top"] + face["height"] / 2])
    transform = np.column_stack([scale * np.eye(2), np.array([56, 61]) - scale * middle])
    assert np.array(lines[1]["embedding"]) @ mean_fields(upright(image, transform)) > 0.999


def test_a_network_of_arcfaces_kind_gives_what_torch_gives(yunet: Path, tmp_path: Path) -> None:
    """Convolutions, PReLU and batch norms, as IResNet has them, exported by torch itself."""
    torch.manual_seed(5)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.PReLU(8),
                                  torch.nn.Conv2d(8, 8, 3, 4, 1), torch.nn.BatchNorm2d(8), torch.nn.Flatten(),
                                  torch.nn.Linear(8 * 14 * 14, 32), torch.nn.BatchNorm1d(32, affine=False)).eval()
    for norm in (network[1], network[4], network[7]):
        norm.running_mean.normal_(0, 0.1)
        norm.running_var.uniform_(0.5, 1.5)
    file = tmp_path / "iresnet.onnx"
    torch.onnx.export(network, torch.zeros(1, 3, 112, 112), str(file), dynamo=False, opset_version=11)
    image = smooth_image(4)
    lines, code = ask(["--recognizer", file, yunet], image)
    assert code == 0, lines
    face = upright(image, similarity(np.array(LANDMARKS), TEMPLATE))
    with torch.no_grad():
        wanted = network(torch.tensor((face - 127.5) / 127.5, dtype=torch.float32).permute(2, 0, 1)[None])[0]
    wanted = torch.nn.functional.normalize(wanted, dim=0).numpy()
    assert np.array(lines[1]["embedding"]) @ wanted > 0.999


def test_an_image_without_a_face_has_no_embedding(tmp_path: Path) -> None:
    network = face_networks.recognizer(tmp_path / "network.onnx")
    cascade = Path("/usr/share/opencv4/haarcascades/haarcascade_frontalface_alt.xml")
    lines, code = ask(["--recognizer", network, cascade], np.full((256, 256, 3), 90, np.uint8))
    assert code == 0 and lines[1] == {"faces": []}


def test_what_is_no_face_recognition_network_is_named(yunet: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.onnx"
    text.write_text("no network at all")
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(yunet.read_bytes()[:5000])
    flat = face_networks.recognizer(tmp_path / "flat.onnx", shape=(1, 112, 112, 3))
    for file, reason in ((text, "is no ONNX network"), (cut, "is no ONNX network"),
                         (flat, "is no face recognition network (its input is [1, 112, 112, 3]; allowed: [N, 3, S, S])"),
                         (tmp_path / "absent.onnx", "cannot be read")):
        lines, code = ask(["--recognizer", file, yunet])
        assert code == 2 and lines == [{"error": f"{file} {reason}"}], lines


def test_a_detector_with_other_outputs_is_refused_before_the_first_photo(tmp_path: Path) -> None:
    """As YuNet files are that a newer OpenCV wants."""
    file = face_networks.recognizer(tmp_path / "other.onnx")
    lines, code = ask([file], smooth_image(0))
    assert code == 2 and lines[0]["error"].startswith(f"{file} cannot be read by OpenCV 4."), lines
    assert "2022mar" in lines[0]["error"] and "\n" not in lines[0]["error"]
