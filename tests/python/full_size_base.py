"""Bases of the published sizes with seeded random weights, for programs that know these sizes alone.

Random layers say nothing: a UNet of them returns nearly the same for each input, a VAE grey images. So the last layers are fitted:
the UNet's predicts the noise of its input from its features, with a share that follows the prompt, and the VAE's have the contrast of
real ones. Then an image depends on seed, prompt and every layer between them.
"""

from __future__ import annotations

from pathlib import Path

import torch
from diffusers import AutoencoderKL, StableDiffusionPipeline, StableDiffusionXLPipeline, UNet2DConditionModel
from tiny_models import VOCABULARY, make_scheduler, make_tokenizer
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

UNETS = {
    "sd1": {"cross_attention_dim": 768},
    "sd2": {"cross_attention_dim": 1024, "attention_head_dim": (5, 10, 20, 20), "use_linear_projection": True},
    "sdxl": {"cross_attention_dim": 2048, "attention_head_dim": (5, 10, 20), "use_linear_projection": True,
             "block_out_channels": (320, 640, 1280), "transformer_layers_per_block": (1, 2, 10),
             "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
             "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), "addition_embed_type": "text_time",
             "addition_time_embed_dim": 256, "projection_class_embeddings_input_dim": 2816},
}
# width, width inside, layers, heads, activation
TEXT_ENCODERS = {"l": (768, 3072, 12, 12, "quick_gelu"), "h": (1024, 4096, 23, 16, "gelu"), "g": (1280, 5120, 32, 20, "gelu")}
SCALING = {"sd1": 0.18215, "sd2": 0.18215, "sdxl": 0.13025}
SIDE = 16  # latents of an image of 128 px
PROMPT_SHARE = 0.5  # of the prediction's size


def make_text_encoder(kind: str, projection: int = 0, end_token: int = 49407) -> CLIPTextModel:
    """CLIP's text encoder of that size; with a projection where one is asked for."""
    width, inside, layers, heads, activation = TEXT_ENCODERS[kind]
    config = CLIPTextConfig(vocab_size=VOCABULARY, hidden_size=width, intermediate_size=inside, num_hidden_layers=layers,
                            num_attention_heads=heads, max_position_embeddings=77, hidden_act=activation, bos_token_id=49406,
                            eos_token_id=end_token, pad_token_id=1, projection_dim=projection or 512)
    encoder = (CLIPTextModelWithProjection if projection else CLIPTextModel)(config).eval()
    # Weights of words keep the mean of the embeddings (A1111's rule), which has to be more than rounding, as in CLIP itself.
    for name, parameter in encoder.named_parameters():
        if name.endswith("final_layer_norm.bias"):
            parameter.data.fill_(-0.1)
    return encoder


@torch.no_grad()
def features(unet: UNet2DConditionModel, noisy: torch.Tensor, time: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
    """What conv_out is given, as rows of its 3 x 3 patches and a 1 for the bias."""
    kept = []
    hook = unet.conv_out.register_forward_pre_hook(lambda _, inputs: kept.append(inputs[0]))
    more = {}
    if unet.config.addition_embed_type:
        more["added_cond_kwargs"] = {"text_embeds": torch.randn(len(noisy), 1280), "time_ids": torch.full((len(noisy), 6), 8.0 * SIDE)}
    unet(noisy, time, context, **more)
    hook.remove()
    rows = torch.nn.functional.unfold(kept[0], 3, padding=1).transpose(1, 2).flatten(0, 1)
    return torch.cat([rows, torch.ones(len(rows), 1)], 1)


@torch.no_grad()
def fit_unet(unet: UNet2DConditionModel, predicts_v: bool, samples: int = 32) -> None:
    """Fits conv_out by ridge regression of the noise (or the velocity) on the features, then adds what follows the prompt."""
    alphas = torch.cumprod(1 - torch.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2, 0)
    seen, wanted = [], []
    for step in range(samples):
        time = torch.tensor([999 - (step * 997) // samples])
        share = alphas[time]
        image, noise = torch.randn(1, 4, SIDE, SIDE), torch.randn(1, 4, SIDE, SIDE)
        seen.append(features(unet, share.sqrt() * image + (1 - share).sqrt() * noise, time,
                             torch.randn(1, 77, unet.config.cross_attention_dim)))
        target = share.sqrt() * noise - (1 - share).sqrt() * image if predicts_v else noise
        wanted.append(target.flatten(2).transpose(1, 2).flatten(0, 1))
    rows, targets = torch.cat(seen).double(), torch.cat(wanted).double()
    square = rows.T @ rows
    weights = torch.linalg.solve(square + 1e-3 * square.diagonal().mean() * torch.eye(len(square)), rows.T @ targets).T.float()
    # A direction in which prompts differ and inputs do not: two contexts, the same input.
    noisy, time = torch.randn(1, 4, SIDE, SIDE), torch.tensor([500])
    one, other = (features(unet, noisy, time, torch.randn(1, 77, unet.config.cross_attention_dim)) for _ in range(2))
    by_prompt = torch.linalg.svd(one - other, full_matrices=False).Vh[:4]
    strength = PROMPT_SHARE / ((one - other) @ by_prompt.T).std()
    # Without the constant part: it would be the same for every image.
    by_prompt = by_prompt * strength
    by_prompt[:, -1] -= by_prompt @ one.mean(0)
    weights = weights + by_prompt
    unet.conv_out.weight.copy_(weights[:, :-1].reshape(unet.conv_out.weight.shape))
    unet.conv_out.bias.copy_(weights[:, -1])


@torch.no_grad()
def fit_vae(vae: AutoencoderKL) -> None:
    """The decoder's last layer gets the contrast of an image, the encoder's the size of latents, nearly without variance."""
    images = vae.decode(torch.randn(2, 4, SIDE, SIDE) / vae.config.scaling_factor).sample
    mean, scale = images.mean((0, 2, 3)), 0.45 / images.std((0, 2, 3))
    last = vae.decoder.conv_out
    last.weight.mul_(scale.reshape(-1, 1, 1, 1))
    last.bias.copy_((last.bias - mean) * scale)
    latents = vae.encode(torch.rand(2, 3, 8 * SIDE, 8 * SIDE) * 2 - 1).latent_dist.mean
    mean, scale = latents.mean((0, 2, 3)), 1 / (latents.std((0, 2, 3)) * vae.config.scaling_factor)
    quant = vae.quant_conv
    quant.weight[:4].mul_(scale.reshape(-1, 1, 1, 1))
    quant.bias[:4].copy_((quant.bias[:4] - mean) * scale)
    quant.weight[4:].zero_()
    quant.bias[4:].fill_(-12.0)


def make_base(family: str, folder: Path) -> Path:
    """Writes the base in half precision, in diffusers' layout: 2.1 GB for sd1, 2.6 for sd2, 6.9 for sdxl."""
    torch.manual_seed(0)
    unet = UNet2DConditionModel(sample_size=SIDE, **UNETS[family]).eval()
    # Random layers of attention hardly pass the prompt on.
    for name, parameter in unet.named_parameters():
        if "attn2.to_v" in name or "attn2.to_out.0.weight" in name:
            parameter.data.mul_(3.0)
    fit_unet(unet, predicts_v=family == "sd2")
    unet = unet.half()
    vae = AutoencoderKL(block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4, sample_size=8 * SIDE,
                        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
                        scaling_factor=SCALING[family]).eval()
    fit_vae(vae)
    parts = {"unet": unet, "vae": vae.half(), "scheduler": make_scheduler(family)}
    scratch = folder.with_name(folder.name + "-vocabulary")
    if family == "sdxl":
        pipe = StableDiffusionXLPipeline(
            text_encoder=make_text_encoder("l").half(), tokenizer=make_tokenizer(scratch / "one"),
            text_encoder_2=make_text_encoder("g", projection=1280).half(), tokenizer_2=make_tokenizer(scratch / "two", "!"),
            add_watermarker=False, **parts)
    else:
        encoder, pad = (make_text_encoder("h"), "!") if family == "sd2" else (make_text_encoder("l", end_token=2), "<|endoftext|>")
        pipe = StableDiffusionPipeline(
            text_encoder=encoder.half(), tokenizer=make_tokenizer(scratch / "one", pad), safety_checker=None, feature_extractor=None,
            requires_safety_checker=False, **parts)
    pipe.save_pretrained(folder)
    return folder
