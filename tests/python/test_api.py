"""The public Python interface: diffusers' numbers and names, errors that name the argument, no torch, no lock held.

The oracle is diffusers itself, run on the same folder in the same process.
"""

from __future__ import annotations

import inspect
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import sdtune

FAMILIES = ("sd1", "sd2", "sdxl")
Folders = Callable[[str], Path]


def relative_error(ours: np.ndarray, reference: np.ndarray) -> float:
    """|ours - reference| / |reference|, over all numbers."""
    return float(np.linalg.norm(ours - reference) / np.linalg.norm(reference))


def reference_pipeline(folder: Path) -> object:
    """The same folder in diffusers, silent."""
    from diffusers import DiffusionPipeline
    pipe = DiffusionPipeline.from_pretrained(folder, local_files_only=True)
    pipe.set_progress_bar_config(disable=True)
    return pipe


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    """Each of the three."""
    return request.param


@pytest.fixture(scope="module")
def pair(family: str, tiny_folder: Folders) -> tuple[sdtune.StableDiffusionPipeline, object]:
    """Ours and diffusers', of the same folder."""
    return sdtune.StableDiffusionPipeline.from_pretrained(tiny_folder(family)), reference_pipeline(tiny_folder(family))


def drawn(pipe: object, seed: int | list[int], **options: object) -> np.ndarray:
    """Four steps with guidance, as an array."""
    if isinstance(pipe, sdtune.StableDiffusionPipeline):
        options["seed"] = seed
    else:
        import torch
        options["generator"] = torch.Generator("cpu").manual_seed(seed)
    settings = {"num_inference_steps": 4, "guidance_scale": 5.0, "output_type": "np"} | options
    return np.asarray(pipe("a photo of sks person", **settings).images)


@pytest.mark.parametrize("options", [
    {}, {"negative_prompt": "blurry, dark"}, {"num_images_per_prompt": 2}, {"height": 48, "width": 24},
    {"guidance_scale": 1.0}], ids=lambda options: ",".join(options) or "plain")
def test_images_are_those_of_diffusers(pair: tuple, options: dict) -> None:
    ours, theirs = pair
    reference = drawn(theirs, 7, **options)
    assert drawn(ours, 7, **options).shape == reference.shape
    assert relative_error(drawn(ours, 7, **options), reference) < 1e-4
    assert relative_error(drawn(ours, 8, **options), reference) > 1e-3, "another seed must not pass"


def test_pil_images_are_those_of_diffusers(pair: tuple) -> None:
    ours, theirs = pair
    picture, reference = (np.asarray(drawn(pipe, 3, output_type="pil")[0], float) for pipe in pair)
    assert picture.shape == reference.shape and np.abs(picture - reference).max() <= 1


def test_parts_give_what_the_oracle_gives(pair: tuple, family: str) -> None:
    import torch
    ours, theirs = pair
    ids = ours.tokenizer(["a cat", "two dogs in the snow"])
    reference_ids = theirs.tokenizer(["a cat", "two dogs in the snow"], padding="max_length", max_length=77,
                                     truncation=True).input_ids
    assert ids.dtype == np.int64 and (ids == np.asarray(reference_ids)).all()
    last, pooled, hidden = ours.text_encoder(ids)
    with torch.no_grad():
        states = theirs.text_encoder(torch.tensor(ids), output_hidden_states=True)
    assert last.dtype == np.float32 and relative_error(last, states.last_hidden_state.numpy()) < 1e-5
    assert relative_error(pooled, states.pooler_output.numpy()) < 1e-5
    assert len(hidden) == len(states.hidden_states)
    image = np.random.default_rng(0).uniform(-1, 1, (1, 3, 32, 32)).astype(np.float32)
    mean, logvar = ours.vae.encode(image)
    with torch.no_grad():
        moments = theirs.vae.encode(torch.tensor(image)).latent_dist
        decoded = theirs.vae.decode(moments.mean).sample.numpy()
    assert relative_error(mean, moments.mean.numpy()) < 1e-5 and relative_error(logvar, moments.logvar.numpy()) < 1e-5
    assert relative_error(ours.vae.decode(mean), decoded) < 1e-5
    assert isinstance(ours, sdtune.StableDiffusionXLPipeline) == (family == "sdxl")


def test_a_written_folder_is_the_same_model_to_diffusers(pair: tuple, tmp_path: Path) -> None:
    ours, theirs = pair
    ours.save_pretrained(tmp_path / "copy")
    copy = reference_pipeline(tmp_path / "copy")
    for name in ("unet", "vae", "text_encoder"):
        mine, original = getattr(copy, name).state_dict(), getattr(theirs, name).state_dict()
        assert mine.keys() == original.keys()
        assert all((mine[key] == original[key]).all() for key in mine), name
    assert relative_error(drawn(copy, 5), drawn(theirs, 5)) < 1e-6


def test_another_scheduler_gives_diffusers_image_and_not_the_first_one(tiny_sd1: Path) -> None:
    from diffusers import DPMSolverMultistepScheduler
    ours, theirs = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1), reference_pipeline(tiny_sd1)
    before = drawn(ours, 1)
    ours.scheduler = sdtune.DPMSolverMultistepScheduler.from_config(ours.scheduler.config, use_karras_sigmas=True)
    theirs.scheduler = DPMSolverMultistepScheduler.from_config(theirs.scheduler.config, use_karras_sigmas=True)
    assert relative_error(drawn(ours, 1), drawn(theirs, 1)) < 1e-4
    assert relative_error(before, drawn(theirs, 1)) > 1e-3
    with pytest.raises((TypeError, RuntimeError)):
        ours.scheduler = "DDIMScheduler"


def test_seeds_generators_and_latents_are_three_ways_to_one_image(tiny_sd1: Path) -> None:
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    reference = drawn(pipe, 11)
    assert (drawn(pipe, 0, generator=sdtune.Generator(11)) == reference).all()
    assert (drawn(pipe, 0, latents=sdtune.Generator(11).randn(1, 4, 8, 8)) == reference).all()
    two = drawn(pipe, [11, 12], num_images_per_prompt=2)
    assert relative_error(two[:1], reference) < 1e-5 and relative_error(two[1:], reference) > 1e-3


def test_on_step_sees_each_step_and_its_exception_ends_the_call(tiny_sd1: Path) -> None:
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    events = []
    latents = drawn(pipe, 0, output_type="latent", on_step=events.append)
    assert [event.step for event in events] == list(range(1, events[0].total + 1))
    assert (events[-1].latents == latents).all()

    def stop(event: object) -> None:
        raise LookupError(f"enough at {event.step}")

    with pytest.raises(LookupError, match="enough at 1"):
        drawn(pipe, 0, on_step=stop)
    assert (drawn(pipe, 0, output_type="latent") == latents).all(), "the pipeline is as good as before"


def own_calls(tiny: Path, tmp_path: Path) -> dict[str, Callable[[sdtune.StableDiffusionPipeline], object]]:
    """What takes a pipeline for itself: calls it or changes it."""
    return {"call": lambda pipe: drawn(pipe, 1), "encode_prompt": lambda pipe: pipe.encode_prompt("a cat"),
            "to": lambda pipe: pipe.to("cpu"), "save_pretrained": lambda pipe: pipe.save_pretrained(tmp_path / "copy"),
            "load_vae": lambda pipe: pipe.load_vae(tiny), "unload_lora_weights": lambda pipe: pipe.unload_lora_weights(),
            "unload_textual_inversion": lambda pipe: pipe.unload_textual_inversion(),
            "enable_vae_tiling": lambda pipe: pipe.enable_vae_tiling(),
            "scheduler": lambda pipe: setattr(pipe, "scheduler", sdtune.DDIMScheduler())}


OWN_CALLS = ["call", "enable_vae_tiling", "encode_prompt", "load_vae", "save_pretrained", "scheduler", "to",
             "unload_lora_weights", "unload_textual_inversion"]


@pytest.mark.parametrize("name", OWN_CALLS)
def test_a_callback_that_uses_its_own_pipeline_is_refused(tiny_sd1: Path, tmp_path: Path, name: str) -> None:
    """In a child, since a deadlock would hold this process."""
    program = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import sdtune, test_api
        pipe = sdtune.StableDiffusionPipeline.from_pretrained({str(tiny_sd1)!r})
        use = test_api.own_calls(Path({str(tiny_sd1)!r}), Path({str(tmp_path)!r}))[{name!r}]
        try:
            pipe("a cat", num_inference_steps=2, output_type="np", on_step=lambda event: use(pipe))
        except RuntimeError as error:
            print("refused:", error)
        use(pipe)
        print(pipe("a cat", num_inference_steps=2, output_type="np").images.shape)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "refused: the pipeline is in use" in done.stdout and "(1, 32, 32, 3)" in done.stdout


@pytest.mark.parametrize("name", OWN_CALLS)
def test_another_thread_waits_for_the_call(tiny_sd1: Path, tmp_path: Path, name: str) -> None:
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    use = own_calls(tiny_sd1, tmp_path)[name]
    quiet = drawn(pipe, 3)
    started = threading.Event()
    steps: list[int] = []

    def on_step(event: sdtune.SampleEvent) -> None:
        steps.append(event.step)
        started.set()
        time.sleep(0.02)

    pictures: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: pictures.append(drawn(pipe, 3, on_step=on_step)))
    thread.start()
    assert started.wait(60)
    use(pipe)
    seen = len(steps)
    thread.join()
    assert seen == len(steps) == 5, "it came between two steps"  # PNDM calls the UNet once more
    assert (pictures[0] == quiet).all()


def test_a_full_memory_is_an_error_of_its_own(tiny_sd1: Path) -> None:
    program = textwrap.dedent(f"""
        import resource, sdtune
        pipe = sdtune.StableDiffusionPipeline.from_pretrained({str(tiny_sd1)!r})
        pipe("a cat", num_inference_steps=1, output_type="np")
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
        try:
            pipe("a cat", width=4096, height=4096, num_inference_steps=1, output_type="np")
        except sdtune.OutOfMemoryError as error:
            print(error.exit_code, error)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout.startswith("4 memory: "), done.stdout + done.stderr


def test_guidance_is_diffusers_default_of_the_class(tiny_folder: Folders) -> None:
    for family, scale in (("sd1", 7.5), ("sdxl", 5.0)):
        pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_folder(family))
        theirs = inspect.signature(type(reference_pipeline(tiny_folder(family))).__call__).parameters
        assert theirs["guidance_scale"].default == scale
        own = drawn(pipe, 1, guidance_scale=None)
        assert (own == drawn(pipe, 1, guidance_scale=scale)).all()
        assert (own != drawn(pipe, 1, guidance_scale=scale + 1)).any()


def test_a_call_takes_the_names_of_samplers(tiny_sd1: Path) -> None:
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    own = drawn(pipe, 1)
    named = drawn(pipe, 1, sampler="dpm++2m_karras")
    assert (drawn(pipe, 1) == own).all() and type(pipe.scheduler) is sdtune.PNDMScheduler
    pipe.scheduler = sdtune.DPMSolverMultistepScheduler.from_config(pipe.scheduler.config, use_karras_sigmas=True)
    assert relative_error(named, drawn(pipe, 1)) < 1e-6
    with pytest.raises(sdtune.ConfigError, match="sampler"):
        drawn(pipe, 1, sampler="dpm")


@pytest.mark.parametrize("options, words", [
    ({"guidance_scal": 3.0}, ["guidance_scal", "mean guidance_scale"]),
    ({"guidance_scale": "high"}, ["guidance_scale", "number"]),
    ({"height": 33}, ["height", "33"]), ({"num_inference_steps": 0}, ["num_inference_steps", "0"]),
    ({"output_type": "jpeg"}, ["output_type", "pil, np, latent"]), ({"latents": "noise"}, ["latents"]),
    ({"latents": np.zeros((1, 4, 9, 9), np.float32)}, ["latents"]), ({"generator": 3}, ["generator", "Generator"]),
    ({"seed": [1, 2, 3]}, ["seed", "3"]), ({"original_size": 64}, ["original_size", "(height, width)"]),
    ({"original_size": (1, 2, 3)}, ["original_size", "(1, 2, 3)"])])
def test_a_bad_argument_is_named(tiny_sd1: Path, options: dict, words: list[str]) -> None:
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    with pytest.raises(sdtune.ConfigError) as caught:
        pipe("a cat", **options)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.problems[0].where and caught.value.exit_code == 2


def test_errors_say_where_and_what(tmp_path: Path, tiny_sd1: Path) -> None:
    with pytest.raises(sdtune.WeightError, match="no-such"):
        sdtune.StableDiffusionPipeline.from_pretrained(tmp_path / "no-such")
    with pytest.raises(sdtune.ConfigError, match="float32"):
        sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1, dtype="float8")
    with pytest.raises(sdtune.ConfigError, match="device"):
        sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1, device="tpu")
    with pytest.raises(sdtune.WeightError, match="lora.safetensors: there is no such file"):
        sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1).load_lora_weights("lora.safetensors")
    assert issubclass(sdtune.ConfigError, sdtune.Error) and issubclass(sdtune.OutOfMemoryError, sdtune.Error)


def test_train_config_takes_options_and_refuses_others(tmp_path: Path) -> None:
    config = sdtune.TrainConfig(images="me", max_train_steps=300, learning_rate=np.float32(0.5), validation_prompt=None)
    assert (config.images, config.max_train_steps, config.learning_rate) == ("me", 300, 0.5)
    config.resolution = 64
    assert config.to_dict()["resolution"] == 64 and pickle.loads(pickle.dumps(config)) == config
    (tmp_path / "me.yaml").write_text(config.to_yaml())
    assert sdtune.TrainConfig.from_yaml(tmp_path / "me.yaml") == config
    assert sdtune.TrainConfig.from_yaml(tmp_path / "me.yaml", seed=5).seed == 5
    with pytest.raises(sdtune.ConfigError) as caught:
        sdtune.TrainConfig(learning_rat=1, max_train_steps=-3, seed="many", resolution=[1, 2])
    assert len(caught.value.problems) == 4 and "learning_rate" in str(caught.value)
    with pytest.raises(sdtune.ConfigError, match="learning_rate"):
        config.learningrate = 3
    with pytest.raises(AttributeError):
        config.no_such_option  # noqa: B018


def test_arrays_of_any_kind_come_in_and_none_is_shared(tiny_sd1: Path) -> None:
    import torch
    scheduler = sdtune.DDIMScheduler()
    scheduler.set_timesteps(5)
    given = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    for form in (given, given.astype(np.float64), given.tolist(), torch.tensor(given), given[:, ::-1].copy()[:, ::-1],
                 np.asfortranarray(given), given.astype(">f4"), given.astype(np.uint16), given.astype(np.uint32), given.astype(">i8")):
        assert (scheduler.scale_model_input(form, 3) == given).all()
    result = scheduler.scale_model_input(given, 3)
    result[:] = -1
    assert given.max() == 7, "a result is not a view of what came in"
    frozen = given.copy()
    frozen.flags.writeable = False
    assert (scheduler.scale_model_input(frozen, 3) == given).all()
    scheduler.timesteps[:] = 0
    assert scheduler.timesteps.max() > 0, "nor of what the scheduler holds"
    for bad in ("text", object(), None):
        with pytest.raises((TypeError, sdtune.Error)):
            scheduler.scale_model_input(bad, 3)


def test_other_threads_run_while_it_computes(tiny_sd1: Path) -> None:
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    ticks = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    def encode() -> tuple[float, float]:
        started = time.monotonic()
        pipe.vae.decode(np.zeros((4, 4, 48, 48), np.float32))
        return started, time.monotonic()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        started, ended = encode()
    finally:
        done.set()
        thread.join()
    inside = [moment for moment in ticks if started < moment < ended]
    assert len(inside) > 10, f"{len(inside)} ticks in {ended - started:.3f} s: the interpreter lock was held"


def test_ctrl_c_ends_a_call_after_its_step(tiny_sd1: Path) -> None:
    program = textwrap.dedent(f"""
        import sdtune
        pipe = sdtune.StableDiffusionPipeline.from_pretrained({str(tiny_sd1)!r})
        try:
            pipe("a cat", num_inference_steps=900, on_step=lambda event: print(event.step, flush=True))
        except KeyboardInterrupt:
            print("interrupted", pipe("a cat", num_inference_steps=1, output_type="np").images.shape)
    """)
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline().strip() == "1"
    child.send_signal(signal.SIGINT)
    lines = child.communicate(timeout=120)[0].split("\n")
    assert child.returncode == 0 and "interrupted (1, 32, 32, 3)" in lines and "900" not in lines


@pytest.mark.long
def test_signals_of_a_timer_leave_a_generation_as_it_is(tiny_sd1: Path) -> None:
    """A profiler sends such: the frames of their handlers must not land where a product of matrices keeps its data."""
    program = textwrap.dedent(f"""
        import signal, sdtune
        pipe = sdtune.StableDiffusionPipeline.from_pretrained({str(tiny_sd1)!r})
        def draw():
            picture = pipe("a cat", num_inference_steps=50, generator=sdtune.Generator(3), output_type="np")
            return picture.images.tobytes()
        quiet, handled = draw(), []
        signal.signal(signal.SIGALRM, lambda number, frame: handled.append(number))
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        drawn = [draw() for _ in range(10)]
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(len(handled) > 5, all(picture == quiet for picture in drawn))
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "True True"), done.stderr


@pytest.mark.parametrize("order", ["sdtune alone", "torch first", "sdtune first"])
def test_imports_without_torch_and_beside_it(order: str, tiny_sd1: Path) -> None:
    program = textwrap.dedent(f"""
        import sys
        order = {order!r}
        if order == "torch first":
            import torch
        import sdtune
        pipe = sdtune.StableDiffusionPipeline.from_pretrained({str(tiny_sd1)!r})
        before = pipe("a cat", num_inference_steps=2, output_type="np").images
        assert order == "torch first" or "torch" not in sys.modules, "torch was imported"
        if order == "sdtune first":
            import torch
        if order != "sdtune alone":
            noise = torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(0))
            after = pipe("a cat", num_inference_steps=2, output_type="np", latents=noise).images
            assert (before == after).all()
            assert torch.nn.Linear(2, 2)(torch.ones(1, 2)).requires_grad
    """)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
