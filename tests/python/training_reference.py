"""The plain training loop that sdtune is compared with: diffusers' modules, PyTorch's AdamW and clipping, our draws.

Everything random comes from sdtune's own keyed generator; everything else is written from the papers and diffusers' scripts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from diffusers import DDPMScheduler, StableDiffusionPipeline, StableDiffusionXLPipeline, UNet2DConditionModel
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel, compute_snr
from PIL import Image
from sdtune._native import testing
from tiny_models import make_pipeline

# model::Draw
NOISE, TIMESTEP, LATENT, ORDER, NOISE_OFFSET, DROPOUT, CLASS_ORDER, INPUT_PERTURBATION = 0, 1, 2, 4, 5, 7, 8, 10
PHOTO_SIDE = 32
INSTANCE_PROMPT, CLASS_PROMPT = "a photo of sks person", "a photo of a person"


@dataclass(frozen=True)
class Settings:
    """The options of one comparison, with sdtune's names and defaults."""

    learning_rate: float = 5e-6
    text_encoder_lr: float | None = None
    adam_weight_decay: float = 1e-2
    max_grad_norm: float = 1.0
    train_batch_size: int = 2
    gradient_accumulation_steps: int = 1
    train_text_encoder: bool = False
    train_text_encoder_frac: float = 1.0
    trainable_layers: tuple[str, ...] = ()
    with_prior_preservation: bool = False
    prior_loss_weight: float = 1.0
    snr_gamma: float | None = None
    dco_beta: float | None = None
    caption_dropout_rate: float = 0.0
    noise_offset: float = 0.0
    rescale_betas_zero_snr: bool = False
    input_perturbation: float = 0.0
    min_timestep: int = 0
    max_timestep: int | None = None
    loss_type: str = "l2"
    huber_c: float = 0.1
    huber_schedule: str = "snr"
    use_ema: bool = False
    ema_decay: float = 0.9999
    lr_scheduler: str = "constant"
    lr_warmup_steps: int = 0
    max_train_steps: int = 20
    seed: int = 3

    @property
    def effective(self) -> int:
        return self.train_batch_size * self.gradient_accumulation_steps

    def words(self) -> list[str]:
        """As flags of the program."""
        given = {name: value for name, value in vars(self).items() if value is not None and name != "trainable_layers"}
        return [*(f"--{name.replace('_', '-')}={str(value).lower()}" for name, value in given.items()),
                *(f"--trainable-layers={layer}" for layer in self.trainable_layers)]

    def trains(self, parameter: str) -> bool:
        """Whether "unet.conv_in.weight" is a selected layer's."""
        layer = "." + parameter.rpartition(".")[0]
        return not self.trainable_layers or any(layer.endswith("." + name) for name in self.trainable_layers)


@dataclass
class Result:
    """What both sides give: the loss of each step, and each trained tensor before and after."""

    losses: list[float] = field(default_factory=list)
    before: dict[str, torch.Tensor] = field(default_factory=dict)
    after: dict[str, torch.Tensor] = field(default_factory=dict)


def write_base(pipe: StableDiffusionPipeline | StableDiffusionXLPipeline, folder: Path, **changes: object) -> Path:
    """The pipeline with norm groups of several channels: one of a single channel makes the bias before it idle, and Adam
    turns an idle parameter's rounding noise into full steps. `changes` go into the UNet's config."""
    torch.manual_seed(1)
    config = {**pipe.unet.config, "norm_num_groups": 8, **changes}
    pipe.unet = UNet2DConditionModel.from_config(config).eval()
    pipe.save_pretrained(folder)
    return folder


def base_maker(folder: Path, **smaller: object) -> Callable[[str], Path]:
    """base_of(family): a base below `folder`, made once; do not write into it. `smaller` changes the UNet, SDXL's not."""
    made: dict[str, Path] = {}

    def base_of(family: str) -> Path:
        if family not in made:
            changes = smaller if family != "sdxl" else {}
            made[family] = write_base(make_pipeline(family, folder / f"{family}_vocabulary"), folder / family, **changes)
        return made[family]

    return base_of


def write_photos(folder: Path, count: int, seed: int) -> Path:
    """Smooth random images of the training size, so that no resizing stands between the two sides."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(seed)
    for index in range(count):
        coarse = Image.fromarray(draw.integers(0, 256, (4, 4, 3), dtype=np.uint8))
        coarse.resize((PHOTO_SIDE, PHOTO_SIDE), Image.Resampling.BICUBIC).save(folder / f"{index:02d}.png")
    return folder


def small_material(folder: Path, photos: int) -> tuple[Path, Path]:
    """A base with a UNet of two narrow levels, for runs of which only the course counts; and that many photos."""
    base = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base", block_out_channels=(16, 32), layers_per_block=1,
                      attention_head_dim=2)
    return base, write_photos(folder / "photos", photos, seed=0)


class ConsistencyLoss(torch.autograd.Function):
    """Direct Consistency Optimization: the gradient is that of the paper's -log sigmoid(-beta (loss - base)), by PyTorch's own autograd, times
    2 / beta; the value is the loss times that gradient."""

    @staticmethod
    def forward(context: torch.autograd.function.FunctionCtx, loss: torch.Tensor, base: torch.Tensor, beta: float) -> torch.Tensor:
        with torch.enable_grad():
            copied = loss.detach().clone().requires_grad_(True)
            paper = -torch.nn.functional.logsigmoid(-beta * (copied - base)).sum()
            (gradient,) = torch.autograd.grad(paper, copied)
        context.save_for_backward(gradient * 2 / beta)
        return loss * gradient * 2 / beta

    @staticmethod
    def backward(context: torch.autograd.function.FunctionCtx, outer: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return outer * context.saved_tensors[0], None, None


class Reference:
    """One run of the plain loop. `change` may edit a step's gradients or the optimizer, for mutants."""

    def __init__(self, base: Path, photos: Path, class_photos: Path | None, settings: Settings) -> None:
        kind = StableDiffusionXLPipeline if (base / "text_encoder_2").is_dir() else StableDiffusionPipeline
        self.pipe = kind.from_pretrained(base)
        self.settings = settings
        rescaled = {"rescale_betas_zero_snr": True} if settings.rescale_betas_zero_snr else {}
        self.noise_scheduler = DDPMScheduler.from_config(self.pipe.scheduler.config, **rescaled)
        self.moments = self.encode(photos)
        self.class_moments = self.encode(class_photos) if class_photos else None
        self.encoders = [self.pipe.text_encoder] + ([self.pipe.text_encoder_2] if self.is_xl else [])
        self.frozen = copy.deepcopy((self.pipe.unet, self.encoders)) if settings.dco_beta else None

    @property
    def is_xl(self) -> bool:
        return isinstance(self.pipe, StableDiffusionXLPipeline)

    @torch.no_grad()
    def encode(self, folder: Path) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Mean and standard deviation of each image's latents, in the order of the names."""
        moments = []
        for path in sorted(folder.glob("*.png")):
            pixels = torch.from_numpy(np.asarray(Image.open(path), np.float32).transpose(2, 0, 1)[None] / 127.5 - 1)
            latent = self.pipe.vae.encode(pixels).latent_dist
            moments.append((latent.mean[0], latent.std[0]))
        return moments

    def sample(self, step: int, sample: int, class_image: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
        """Latent, noise, the noise that the UNet sees, and timestep of one place of the batch."""
        settings, moments = self.settings, self.class_moments if class_image else self.moments
        purpose = CLASS_ORDER if class_image else ORDER
        order = testing.draw_permutation(settings.seed, purpose, sample // len(moments), len(moments))
        mean, std = moments[order[sample % len(moments)]]
        key = {"seed": settings.seed, "step": step, "sample": sample, "class_image": class_image}

        def normal(purpose: int, *shape: int) -> torch.Tensor:
            return torch.from_numpy(np.array(testing.draw_normal(purpose=purpose, shape=list(shape), **key)))

        latent = (mean + std * normal(LATENT, *mean.shape)) * self.pipe.vae.config.scaling_factor
        noise = normal(NOISE, *mean.shape) + settings.noise_offset * normal(NOISE_OFFSET, mean.shape[0], 1, 1)
        seen = noise + settings.input_perturbation * normal(INPUT_PERTURBATION, *mean.shape)
        end = settings.max_timestep or self.noise_scheduler.config.num_train_timesteps
        timestep = settings.min_timestep + testing.draw_integer(purpose=TIMESTEP, below=end - settings.min_timestep, **key)
        return latent, noise, seen, timestep

    def caption(self, step: int, sample: int) -> str:
        """Of a photo: now and then none."""
        draw = testing.draw_uniform(seed=self.settings.seed, purpose=DROPOUT, step=step, sample=sample, class_image=False)
        return "" if draw < self.settings.caption_dropout_rate else INSTANCE_PROMPT

    def errors(self, difference: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
        """Of each number: squared, or pseudo-Huber with a scheduled width."""
        settings = self.settings
        if settings.loss_type == "l2":
            return difference**2
        sigma = compute_snr(self.noise_scheduler, timesteps) ** -0.5
        count = self.noise_scheduler.config.num_train_timesteps
        width = {"constant": torch.full_like(sigma, settings.huber_c),
                 "exponential": torch.exp(np.log(settings.huber_c) * timesteps / count),
                 "snr": (1 - settings.huber_c) / (1 + sigma) ** 2 + settings.huber_c}[settings.huber_schedule]
        width = width.reshape(-1, 1, 1, 1)
        scale = {"huber": 2 * width, "smooth_l1": 2.0}[settings.loss_type]
        return scale * (torch.hypot(difference, width) - width)

    def text_states(self, prompts: list[str], encoders: list[torch.nn.Module]) -> tuple[torch.Tensor, torch.Tensor | None]:
        """What the UNet attends to, and SDXL's pooled text."""
        states, pooled = [], None
        for tokenizer, encoder in zip([self.pipe.tokenizer, getattr(self.pipe, "tokenizer_2", None)], encoders):
            ids = tokenizer(prompts, padding="max_length", max_length=77, truncation=True, return_tensors="pt").input_ids
            output = encoder(ids, output_hidden_states=True)
            states.append(output.hidden_states[-2] if self.is_xl else output[0])
            pooled = output[0]
        return torch.cat(states, -1), pooled if self.is_xl else None

    def predict(self, noisy: torch.Tensor, timesteps: torch.Tensor, prompts: list[str],
                models: tuple[UNet2DConditionModel, list[torch.nn.Module]] | None = None) -> torch.Tensor:
        """The UNet's output, of the trained models unless others are given."""
        unet, encoders = models or (self.pipe.unet, self.encoders)
        context, pooled = self.text_states(prompts, encoders)
        size = torch.tensor([[PHOTO_SIDE, PHOTO_SIDE, 0, 0, PHOTO_SIDE, PHOTO_SIDE]] * len(prompts))
        added = {"text_embeds": pooled, "time_ids": size} if self.is_xl else None
        return unet(noisy, timesteps, context, added_cond_kwargs=added).sample

    def sample_losses(self, step: int, samples: list[int], class_image: bool) -> torch.Tensor:
        """The weighted squared error of each place: [B]."""
        latents, noise, seen, timesteps = zip(*(self.sample(step, sample, class_image) for sample in samples))
        latents, noise, seen, timesteps = (*map(torch.stack, (latents, noise, seen)), torch.tensor(timesteps))
        noisy = self.noise_scheduler.add_noise(latents, seen, timesteps)
        prompts = [CLASS_PROMPT if class_image else self.caption(step, sample) for sample in samples]
        is_v = self.noise_scheduler.config.prediction_type == "v_prediction"
        target = self.noise_scheduler.get_velocity(latents, noise, timesteps) if is_v else noise
        weights = torch.ones(len(samples))
        if self.settings.snr_gamma is not None:
            snr = compute_snr(self.noise_scheduler, timesteps)
            weights = snr.clamp(max=self.settings.snr_gamma) / (snr + 1 if is_v else snr)

        def losses(prediction: torch.Tensor) -> torch.Tensor:
            return weights * self.errors(prediction - target, timesteps).mean(dim=(1, 2, 3))

        ours = losses(self.predict(noisy, timesteps, prompts))
        if self.frozen is None or class_image:
            return ours
        with torch.no_grad():
            bases = losses(self.predict(noisy, timesteps, prompts, self.frozen))
        return ConsistencyLoss.apply(ours, bases, self.settings.dco_beta)

    def loss(self, step: int, samples: list[int]) -> torch.Tensor:
        """Mean over the photos plus weight times mean over the class images."""
        loss = self.sample_losses(step, samples, False).mean()
        if self.settings.with_prior_preservation:
            loss = loss + self.settings.prior_loss_weight * self.sample_losses(step, samples, True).mean()
        return loss

    def trained(self) -> dict[str, torch.nn.Module]:
        """Component -> module."""
        modules = {"unet": self.pipe.unet}
        if self.settings.train_text_encoder:
            modules.update(zip(("text_encoder", "text_encoder_2"), self.encoders))
        return modules

    def named_parameters(self) -> dict[str, torch.nn.Parameter]:
        """"unet.conv_in.weight" -> parameter."""
        return {f"{part}.{name}": parameter for part, module in self.trained().items()
                for name, parameter in module.named_parameters() if self.settings.trains(f"{part}.{name}")}

    def optimizer(self) -> torch.optim.Optimizer:
        """UNet and text encoder at their own rates."""
        settings = self.settings
        text_rate = settings.text_encoder_lr if settings.text_encoder_lr is not None else settings.learning_rate
        groups = [{"params": [parameter for parameter in module.parameters() if parameter.requires_grad], "lr": settings.learning_rate if part == "unet" else text_rate}
                  for part, module in self.trained().items()]
        return torch.optim.AdamW(groups, lr=settings.learning_rate, weight_decay=settings.adam_weight_decay)

    def run(self, make_optimizer: Callable[[Reference], torch.optim.Optimizer] = optimizer, clips: bool = True) -> Result:
        """All steps; accumulation in rounds as a plain script does it."""
        settings, result = self.settings, Result()
        for module in (self.pipe.vae, self.pipe.unet, *self.encoders):
            module.requires_grad_(False)
        parameters = self.named_parameters()
        for parameter in parameters.values():
            parameter.requires_grad_(True)
        result.before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        optimizer = make_optimizer(self)
        average = EMAModel(parameters.values(), decay=settings.ema_decay) if settings.use_ema else None
        schedule = get_scheduler(settings.lr_scheduler, optimizer, num_warmup_steps=settings.lr_warmup_steps,
                                 num_training_steps=settings.max_train_steps)
        for step in range(settings.max_train_steps):
            if step == round(settings.train_text_encoder_frac * settings.max_train_steps):
                for encoder in self.encoders:
                    encoder.requires_grad_(False)
            total = 0.0
            for round_ in range(settings.gradient_accumulation_steps):
                first = step * settings.effective + round_ * settings.train_batch_size
                loss = self.loss(step, list(range(first, first + settings.train_batch_size)))
                (loss / settings.gradient_accumulation_steps).backward()
                total += loss.item() / settings.gradient_accumulation_steps
            if clips:
                torch.nn.utils.clip_grad_norm_(parameters.values(), settings.max_grad_norm)
            optimizer.step()
            if average:
                average.step(parameters.values())
            schedule.step()
            optimizer.zero_grad()
            result.losses.append(total)
        if average:
            average.copy_to(parameters.values())
        result.after = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        return result


def update_error(got: dict[str, torch.Tensor], reference: Result) -> float:
    """|dw - dw_ref| / |dw_ref| over all trained tensors together."""
    difference = norm = 0.0
    for name, start in reference.before.items():
        update = reference.after[name].double() - start.double()
        difference += (got[name].double() - start.double() - update).square().sum().item()
        norm += update.square().sum().item()
    return (difference / norm) ** 0.5
