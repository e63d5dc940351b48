"""Results show themselves: every text of a user is escaped, nothing is loaded from elsewhere, and the bytes are bounded."""

from __future__ import annotations

import io
import math
import pickle
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from test_notebook_use import options

import sdtune
from sdtune import _html

HOSTILE = "<img src=x onerror=alert(1)>\"'</td></table><script>alert(2)</script>&amp;"
LARGEST = 1_500_000  # bytes of one result in a notebook


class Tags(HTMLParser):
    """The tags and addresses of a text, and what a reader sees of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data: str) -> None:
        self.words += data


def assert_harmless(text: str) -> Tags:
    """No script, no handler, no address outside the text."""
    page = Tags(text)
    assert "script" not in page.tags and not [name for name, _ in page.attributes if name.startswith("on")]
    assert all((value or "").startswith("data:image/png;base64,") for name, value in page.attributes if name in ("src", "href"))
    assert len(text) < LARGEST
    return page


@pytest.fixture(scope="module")
def pipe(tiny_sd1: Path) -> sdtune.StableDiffusionPipeline:
    return sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)


def decoded(png: bytes) -> np.ndarray:
    from PIL import Image
    return np.asarray(Image.open(io.BytesIO(png)))


def test_png_is_what_pillow_reads() -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert (decoded(_html.png(image)) == image).all()


@pytest.mark.parametrize("shape", [(700, 500), (1, 300_000), (300_000, 1), (448, 448)])
def test_an_image_is_shrunk_to_means(shape: tuple[int, int]) -> None:
    image = np.zeros((*shape, 3), np.uint8)
    image[..., 1] = 200
    image[: shape[0] // 2, : shape[1] // 2, 0] = 100
    small = _html.shrunk(image, 10_000)
    assert 0 < small.shape[0] * small.shape[1] <= 10_000
    assert (small[..., 1] == 200).all()
    assert abs(float(small[..., 0].mean()) - float(image[..., 0].mean())) < 2
    assert abs(float(image[..., 0].T.mean()) - float(small[..., 1].mean())) > 2, "another channel has another mean"


def test_a_pipeline_s_images_are_shown_with_their_seeds(pipe: sdtune.StableDiffusionPipeline) -> None:
    out = pipe(HOSTILE, num_inference_steps=1, seed=[11, 12], num_images_per_prompt=2)
    assert out.seeds == [11, 12] and out.prompts == [HOSTILE] * 2
    assert repr(out).startswith("PipelineOutput(2 images of 32 x 32, seeds=[11, 12], prompt=")
    page = assert_harmless(out._repr_html_())
    assert page.tags.count("img") == 2 and HOSTILE in page.words and "seed 11" in page.words and "seed 12" in page.words
    sheet = decoded(out._repr_png_())
    assert sheet.shape == (32, 68, 3)
    assert (sheet[:, :32] == np.asarray(out.images[0])).all() and (sheet[:, 36:] == np.asarray(out.images[1])).all()
    batch = pipe(["one", HOSTILE], num_inference_steps=1, seed=3, output_type="np")
    page = assert_harmless(batch._repr_html_())
    assert "seed 3, image 2 of 2: " + HOSTILE in page.words
    drawn = pipe("one", num_inference_steps=1, generator=sdtune.Generator(3), output_type="np")
    assert drawn.seeds == [None] and "image 1 of 1" in drawn._repr_html_()
    latents = pipe("one", num_inference_steps=1, output_type="latent")
    assert latents._repr_html_() is None and latents._repr_png_() is None and "[1, 4, 8, 8]" in repr(latents)


@pytest.mark.parametrize(("seed", "seeds"), [(np.array(4), [4, 4]), (np.uint8(4), [4, 4]), (np.array([4, 5]), [4, 5]), (range(4, 6), [4, 5]),
                                              ((number for number in (4, 5)), [4, 5])])
def test_seeds_are_told_of_whatever_held_them(pipe: sdtune.StableDiffusionPipeline, seed: object, seeds: list[int]) -> None:
    """A seed that the core took and the result could not read lost the images; so did a number of images as text."""
    settings = {"num_inference_steps": 1, "output_type": "np"}
    out = pipe("one", seed=seed, num_images_per_prompt="2", **settings)
    assert out.seeds == seeds and out.prompts == ["one"] * 2
    plain = pipe("one", seed=seeds if seeds[0] != seeds[1] else seeds[0], num_images_per_prompt=2, **settings)
    assert (out.images == plain.images).all()


def test_prompts_are_told_of_whatever_held_them(pipe: sdtune.StableDiffusionPipeline) -> None:
    out = pipe((text for text in ("one", "two")), num_inference_steps=1, seed=3, num_images_per_prompt=2)
    assert out.prompts == ["one", "one", "two", "two"] and out.seeds == [3] * 4 and len(out.images) == 4
    with pytest.raises(sdtune.ConfigError, match="seed: got"):
        pipe("one", num_inference_steps=1, seed=1.5)


def test_many_large_images_stay_small() -> None:
    noise = np.random.default_rng(0).random((60, 256, 256, 3), dtype=np.float32)
    out = sdtune.PipelineOutput(noise, ["a"] * 60, list(range(60)))
    page = assert_harmless(out._repr_html_())
    assert page.tags.count("img") == _html.MOST_IMAGES and "and 36 more" in page.words
    assert len(out._repr_png_()) < LARGEST


@pytest.fixture(scope="module")
def run(tiny_sd1: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[sdtune.TrainResult, list[sdtune.ValidationEvent]]:
    """Four steps with validation images of a hostile prompt."""
    events: list[sdtune.ValidationEvent] = []
    folder = tmp_path_factory.mktemp("run") / "<b onclick=alert(1)>"
    config = sdtune.TrainConfig(**options(tiny_sd1, folder, validation_prompt=HOSTILE, validation_steps=4,
                                          num_validation_images=2, validation_inference_steps=1))
    return sdtune.train(config, on_validation=events.append), events


def test_a_validation_is_shown(run: tuple[sdtune.TrainResult, list[sdtune.ValidationEvent]]) -> None:
    event = run[1][-1]
    assert repr(event).startswith(f"ValidationEvent(step={event.step}, 2 images, seeds=")
    page = assert_harmless(event._repr_html_())
    assert page.tags.count("img") == 2 and HOSTILE in page.words
    sheet = decoded(event._repr_png_())
    assert (sheet[:, :32] == event.images[0]).all() and (event.images[0] != event.images[1]).any()


def test_a_result_shows_its_report_and_loads_its_model(run: tuple[sdtune.TrainResult, list[sdtune.ValidationEvent]]) -> None:
    result = run[0]
    assert "step=4" in repr(result) and "object at" not in repr(result)
    page = assert_harmless(result._repr_html_())
    assert "b" not in page.tags and "onclick=alert" in page.words
    attributes = dict(page.attributes)
    assert "sandbox" in attributes and attributes["srcdoc"] == (result.output / "report.html").read_text()
    (result.output / "report.html").rename(result.output / "kept.html")
    assert "polyline" in assert_harmless(result._repr_html_()).tags
    (result.output / "kept.html").rename(result.output / "report.html")
    trained = sdtune.StableDiffusionPipeline.from_pretrained(result.model_path)
    settings = {"num_inference_steps": 2, "output_type": "np"}
    assert (result.pipeline()("a cat", **settings).images == trained("a cat", **settings).images).all()
    base = sdtune.StableDiffusionPipeline.from_pretrained(result.base)
    assert (base("a cat", **settings).images != trained("a cat", **settings).images).any()
    assert pickle.loads(pickle.dumps(result)) == result


def test_metrics_are_columns_that_pandas_takes(run: tuple[sdtune.TrainResult, list[sdtune.ValidationEvent]]) -> None:
    import pandas
    metrics = run[0].metrics
    frame = pandas.DataFrame(metrics)
    assert list(frame["step"]) == [1, 2, 3, 4] and frame["loss"].dtype == np.float64 and frame["skipped"].dtype == np.bool_
    assert frame["loss_prior"].isna().all() and metrics["step"].dtype == np.int64
    rows = metrics.rows()
    assert rows[2]["step"] == 3 and rows[2]["loss"] == metrics["loss"][2] and rows[2]["loss_prior"] is None
    copied = pickle.loads(pickle.dumps(metrics))
    assert copied.rows() == rows and math.isnan(copied["loss_prior"][0])
    assert "polyline" in assert_harmless(metrics._repr_html_()).tags
    older = sdtune.Metrics([{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25, "max_memory_bytes": 8}])
    assert older["step"].dtype == np.int64 and math.isnan(older["max_memory_bytes"][0]) and older["max_memory_bytes"][1] == 8
    empty = sdtune.Metrics()
    assert empty.rows() == [] and "0 steps" in empty._repr_html_() and "0 steps" in repr(empty)


def test_the_model_of_a_lora_is_the_base_with_it(tiny_sd1: Path, tmp_path: Path) -> None:
    result = sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run", method="lora", learning_rate=0.05)))
    base = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    settings = {"num_inference_steps": 2, "output_type": "np"}
    plain = base("a cat", **settings).images
    base.load_lora_weights(result.model_path)
    expected = base("a cat", **settings).images
    assert (result.pipeline()("a cat", **settings).images == expected).all() and (expected != plain).any()


def test_problems_and_plans_are_tables(tiny_sd1: Path, tmp_path: Path) -> None:
    bad = sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run", images=str(tmp_path / HOSTILE.replace("/", ""))))
    problems = sdtune.check(bad)
    page = assert_harmless(problems._repr_html_())
    assert isinstance(problems, list) and problems and "img" not in page.tags and "onerror" in page.words
    assert "img" not in assert_harmless(problems[0]._repr_html_()).tags and str(problems[0]) in repr(problems)
    good = sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run"))
    assert sdtune.check(good) == [] and repr(sdtune.check(good)) == "no problems"
    assert "would start" in sdtune.check(good)._repr_html_()
    plan = sdtune.plan(good)
    page = assert_harmless(plan._repr_html_())
    assert page.tags.count("table") == 2 and "H100" in page.words and "training" in page.words
    assert "4 steps" in plan.summary() and plan["run"]["total_steps"] == 4 and "Plan(" in repr(plan)


def test_a_configuration_shows_what_differs_and_why(tmp_path: Path) -> None:
    (tmp_path / "me.yaml").write_text("seed: 7\n")
    config = sdtune.TrainConfig.from_yaml(tmp_path / "me.yaml", instance_prompt=HOSTILE, max_train_steps=3)
    assert config.origins()["seed"] == f"{tmp_path / 'me.yaml'}:1" and config.origins()["max_train_steps"] == "max_train_steps"
    assert "rank" not in config.origins()
    page = assert_harmless(config._repr_html_())
    assert "me.yaml:1" in page.words and HOSTILE in page.words and "set here" in page.words and "bundled base" in page.words
    assert "lora_alpha" not in page.words


def photo_report(folder: Path, names: list[str], warned: list[str], refused: list[str]) -> sdtune.PhotoReport:
    """As doctor prints it, of files of this folder."""
    photos = [{"file": str(folder / name), "width": 96, "height": 64, "orientation": 1, "caption": HOSTILE, "repeats": 1, "sharpness": 0.5,
               "faces_searched": True, "faces": [[1, 2, 3, 4]]} for name in names]
    fault = {"what": f"is blurred {HOSTILE}", "hint": HOSTILE}
    return sdtune.PhotoReport._of({
        "photos": photos, "warnings": [{"where": str(folder / name), **fault} for name in warned],
        "problems": [{"where": str(folder / name), **fault} for name in refused], "notes": [HOSTILE],
        "left_out": [{"where": HOSTILE, **fault}], "contact_sheet": None})


def test_a_photo_report_shows_what_is_wrong_with_each_photo(tmp_path: Path) -> None:
    """Photos with warnings first, each with its own; the refused by name, with the reason; a photo that is gone is said to be."""
    for name in ("a.png", "b.png", "c.png"):
        sdtune.save_png(tmp_path / name, np.full((64, 96, 3), 80, np.uint8))
    report = photo_report(tmp_path, ["a.png", "b.png", "gone.png", "c.png"], ["c.png"], ["broken.jpg"])
    page = assert_harmless(report._repr_html_())
    assert page.tags.count("img") == 3 and page.tags.count("figure") == 4
    assert page.words.index("c.png, 96 x 64 px") < page.words.index("a.png, 96 x 64 px")
    assert page.words.count("is blurred") == 3 and "the file is gone" in page.words and "broken.jpg" in page.words
    assert "4 photos, 1 warning, 1 refused" in page.words and HOSTILE in page.words
    assert report.warnings_of(report.photos[3]) == list(report.warnings) and report.warnings_of(report.photos[0]) == []
    assert "refused: " in repr(report) and "warning: " in repr(report)


@pytest.mark.long
def test_a_large_photo_report_is_bounded(tmp_path: Path) -> None:
    """Noise of many megapixels, hundreds of photos and of refused files; one photo is in memory at a time."""
    noise = np.random.default_rng(0).integers(0, 256, (1500, 2000, 3), dtype=np.uint8)
    names = [f"{index}.png" for index in range(400)]
    for name in names[:30]:
        sdtune.save_png(tmp_path / name, noise)
    report = photo_report(tmp_path, names, names[300:], [f"{HOSTILE}{index}" for index in range(400)])
    page = assert_harmless(report._repr_html_())
    assert page.tags.count("figure") == _html.MOST_IMAGES and "and 376 more" in page.words and "and 200 more" in page.words
    shown = photo_report(tmp_path, names[:30], [], [])
    assert assert_harmless(shown._repr_html_()).tags.count("img") == _html.MOST_IMAGES


def test_a_configuration_is_pickled_with_its_origins(tmp_path: Path) -> None:
    """Every way of copying keeps values and where they came from; the state of sdtune 0.1.0, of values alone, is still read."""
    import copy
    file = tmp_path / "me.yaml"
    file.write_text("resolution: 64\nconcepts:\n  - images: a\n")
    config = sdtune.TrainConfig.from_yaml(file, seed=3, snr_gamma=None)
    assert config.origins()["resolution"].endswith("me.yaml:1") and config.origins()["base"] == "bundled base"
    for other in (pickle.loads(pickle.dumps(config)), copy.copy(config), copy.deepcopy(config)):
        assert other == config and other.origins() == config.origins() and other.preset_values() == config.preset_values()
        assert repr(other) == repr(config) and other.to_yaml() == config.to_yaml()
        other.seed = 4
        assert config.seed == 3 and other.origins()["seed"] == "seed"
    assert config != None and config != "me.yaml" and config not in [None, 1]  # noqa: E711
    old = sdtune.TrainConfig.__new__(sdtune.TrainConfig)
    old.__setstate__(config.to_dict())
    assert old == config and old.origins() != config.origins()


def test_a_list_of_a_configuration_is_a_copy_to_assign() -> None:
    config = sdtune.TrainConfig(report_to=["tensorboard"])
    config.report_to.append("mlflow")
    assert config.report_to == ["tensorboard"]
    config.report_to = [*config.report_to, "mlflow"]
    assert config.report_to == ["tensorboard", "mlflow"]
    assert "config.report_to = [*config.report_to, " in sdtune.TrainConfig.__doc__


def test_errors_are_pickled_with_their_problems() -> None:
    """As a pool of processes hands them on; a copy is another object with the same faults."""
    import copy
    with pytest.raises(sdtune.ConfigError) as caught:
        sdtune.TrainConfig(learning_rat=1, max_train_steps=-3)
    error = caught.value
    assert len(error.problems) == 2
    for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error), copy.copy(error)):
        assert type(other) is sdtune.ConfigError and other is not error
        assert str(other) == str(error) and other.exit_code == error.exit_code == 2
        assert other.problems == error.problems and len(set(other.problems) | set(error.problems)) == 2
        assert [(one.where, one.what, one.hint) for one in other.problems] == [(one.where, one.what, one.hint) for one in error.problems]
    problem = error.problems[0]
    assert problem == sdtune.Problem(problem.where, problem.what, problem.hint)
    for parts in (("x", problem.what, problem.hint), (problem.where, "x", problem.hint), (problem.where, problem.what, "x")):
        assert problem != sdtune.Problem(*parts)
    assert problem != str(problem) and problem != None  # noqa: E711
