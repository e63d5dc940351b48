"""Faults of a base's configs, tokenizers and scheduler."""

from __future__ import annotations

import json

from planted_faults import Fault, Place, both, config, content, null, option, without

UNET, VAE, TEXT = "unet/config.json", "vae/config.json", "text_encoder/config.json"
INDEX, SCHEDULER = "model_index.json", "scheduler/scheduler_config.json"
TOKENS = "tokenizer/tokenizer_config.json"
DEEP = "[" * 70 + "]" * 70


def another_encoder(place: Place) -> list[str]:
    place.edit(INDEX, text_encoder=["transformers", "T5EncoderModel"])
    return []


def link_to_itself(place: Place) -> list[str]:
    (place.base / "again").symlink_to(place.base)
    return []


def integer_beyond_64_bits(place: Place) -> list[str]:
    (place.base / UNET).write_text(json.dumps({"layers_per_block": 2**63}))
    return []


def unet_of_many_blocks(place: Place) -> list[str]:
    place.edit(UNET, layers_per_block=64, transformer_layers_per_block=64)
    return []


CONFIGS: dict[str, Fault] = {
    "text width of the UNet": config(UNET, cross_attention_dim=48),
    "channels into the UNet": config(UNET, in_channels=9),
    "channels out of the UNet": config(UNET, out_channels=8),
    "SDXL's conditioning in SD 1": config(UNET, addition_embed_type="text_time", addition_time_embed_dim=8,
                                          projection_class_embeddings_input_dim=88),
    "unknown key of the UNet": config(UNET, new_feature=3),
    "key that is nearly known": config(UNET, in_chanels=4),
    "UNet config that is not JSON": content("base/" + UNET, "{"),
    "UNet config that is a list": content("base/" + UNET, "[]"),
    "UNet config with a key twice": content("base/" + UNET, '{"in_channels": 4, "in_channels": 4}'),
    "UNet config that is nested too deep": content("base/" + UNET, '{"a": ' + DEEP + "}"),
    "integer beyond 64 bits": integer_beyond_64_bits,
    "integer that is a text": config(UNET, in_channels="four"),
    "number that is a text": config(UNET, norm_eps="small"),
    "bool that is a number": config(UNET, flip_sin_to_cos=1),
    "string that is a number": config(UNET, act_fn=5),
    "list of integers that holds a text": config(UNET, block_out_channels=["32", 64]),
    "list of bools that holds a number": config(UNET, only_cross_attention=[True, 1]),
    "list of strings that is a number": config(UNET, down_block_types=5),
    "list of strings that holds a number": config(UNET, down_block_types=["DownBlock2D", 5]),
    "feature that is not supported": config(UNET, dual_cross_attention=True),
    "no layers in a block": config(UNET, layers_per_block=0),
    "too many layers in a block": config(UNET, layers_per_block=10**9),
    "unknown activation": config(UNET, act_fn="tanh"),
    "sample size that is no square": config(UNET, sample_size=[8, 16]),
    "depth that is a text": config(UNET, transformer_layers_per_block="one"),
    "no levels": config(UNET, block_out_channels=[]),
    "unknown conditioning": config(UNET, addition_embed_type="image"),
    "no norms": null(UNET, "norm_num_groups"),
    "unknown block": config(UNET, down_block_types=["DownBlock2D", "AttnDownBlock2D"]),
    "more blocks than levels": config(UNET, up_block_types=["UpBlock2D"] * 3),
    "too many blocks": unet_of_many_blocks,
    "channels that do not divide": config(UNET, block_out_channels=[48, 64]),
    "depths without the way up": config(UNET, transformer_layers_per_block=[[1, 1], [1, 1]]),
    "depths of another length": config(UNET, transformer_layers_per_block=[[1, 1, 1], 1],
                                       reverse_transformer_layers_per_block=[1, 1]),
    "depths up of another length": config(UNET, reverse_transformer_layers_per_block=[[1, 1], 1]),
    "odd channels": config(UNET, block_out_channels=[33, 66], norm_num_groups=33, attention_head_dim=33),
    "even kernel": config(UNET, conv_in_kernel=4),
    "unknown padding": config(UNET, downsample_padding=2),
    "odd time embedding": config(UNET, addition_embed_type="text_time", addition_time_embed_dim=7,
                                 projection_class_embeddings_input_dim=82),
    "unknown block of the VAE": config(VAE, down_block_types=["DownBlock2D"] * 3),
    "more blocks of the VAE than levels": config(VAE, down_block_types=["DownEncoderBlock2D"] * 2),
    "groups of the VAE": config(VAE, norm_num_groups=5),
    "scaling of the VAE": config(VAE, scaling_factor=0),
    "no levels of the VAE": config(VAE, block_out_channels=[]),
    "unknown class of text encoder": config(TEXT, architectures=["BertModel"]),
    "unknown activation of the text encoder": config(TEXT, hidden_act="relu"),
    "heads of the text encoder": config(TEXT, num_attention_heads=5),
    "vocabulary is too small": config(TEXT, vocab_size=500),
    "tokenizer longer than the positions": config(TOKENS, model_max_length=120),
    "unknown pipeline": config(INDEX, _class_name="FluxPipeline"),
    "part that is no pair": config(INDEX, unet="UNet2DConditionModel"),
    "another text encoder": another_encoder,
    "base with a link to itself": link_to_itself,
    "no UNet config": without(UNET),
    "UNet config is a folder": both(without(UNET), content("base/" + UNET + "/file", "x")),
    "no model index": without(INDEX),
    "LoRA as the base": both(without(INDEX), content("base/pytorch_lora_weights.safetensors", "x")),
    "base is a file": lambda place: ["--base", str(place.write("model.safetensors", "x"))],
    "model note that is a list": content("base/sdtune.json", "[]"),
    "model note of a base to evaluate": content("base/sdtune.json", "[]", "--identity-steps", "1"),
}

MERGES = "base/tokenizer/merges.txt"
VOCABULARY = "base/tokenizer/vocab.json"
SINGLE = "base/tokenizer/tokenizer.json"


def single(**values: object) -> Fault:
    """A tokenizer in one file, with these keys of its model."""
    model = {"type": "BPE", "vocab": {"a": 0}, "merges": [], **values}
    return content(SINGLE, json.dumps({"model": {key: value for key, value in model.items() if value is not None}}))


def tokens_of_before(**files: object) -> Fault:
    """A tokenizer from before added_tokens_decoder, with these files."""
    def plant(place: Place) -> list[str]:
        place.edit(TOKENS, added_tokens_decoder=None)
        for name, value in files.items():
            place.write(f"base/tokenizer/{name}.json", json.dumps(value))
        return []
    return plant


TOKENIZER: dict[str, Fault] = {
    "no tokenizer": without("tokenizer"),
    "vocabulary that is not JSON": content(VOCABULARY, "{"),
    "vocabulary that is empty": content(VOCABULARY, "{}"),
    "vocabulary with a wrong id": content(VOCABULARY, '{"a": 5}'),
    "merge of three tokens": content(MERGES, "#version: 0.2\na b c\n"),
    "merge that the vocabulary lacks": content(MERGES, "#version: 0.2\nqqqqq zzzzz\n"),
    "tokenizer.json without a model": content(SINGLE, "{}"),
    "tokenizer.json that is nested too deep": content(SINGLE, '{"model": {}, "added_tokens": ' + "[" * 10**6 + "]" * 10**6 + "}"),
    "tokenizer.json of another kind": single(type="Unigram"),
    "tokenizer.json of a kind that is a number": single(type=5),
    "tokenizer.json without merges": single(merges=None),
    "tokenizer.json with one merge for all": single(merges="a b"),
    "tokenizer.json with a number as a merge": single(merges=[5]),
    "tokenizer config that is a list": content("base/" + TOKENS, "[]"),
    "token that is a number": config(TOKENS, bos_token=5),
    "token without content": config(TOKENS, bos_token={"special": True}),
    "tokenizer that is too long": config(TOKENS, model_max_length=10**6),
    "token with a word as its id": config(TOKENS, added_tokens_decoder={"one": {"content": "<|startoftext|>"}}),
    "token with another id": config(TOKENS, added_tokens_decoder={"7": {"content": "<|startoftext|>"}}),
    "unknown class of tokenizer": config(TOKENS, tokenizer_class="T5Tokenizer"),
    "class of tokenizer that is a number": config(TOKENS, tokenizer_class=5),
    "added token without an id": tokens_of_before(added_tokens={"<sks>": "none"}),
}

SCHEDULERS: dict[str, Fault] = {
    "unknown curve of the schedule": config(SCHEDULER, beta_schedule="sawtooth"),
    "schedule of a text": config(SCHEDULER, num_train_timesteps="many"),
    "schedule that is too long": config(SCHEDULER, num_train_timesteps=10**7),
    "unknown scheduler key": config(SCHEDULER, beta_shedule="linear"),
    "scheduler config that is a list": content("base/" + SCHEDULER, "[]"),
    "unknown scheduler": config(INDEX, scheduler=["diffusers", "EulerScheduler"]),
    "two curves of sigmas": both(config(INDEX, scheduler=["diffusers", "EulerDiscreteScheduler"]),
                                 config(SCHEDULER, use_karras_sigmas=True, use_exponential_sigmas=True)),
    "curve of sigmas below 0": both(config(INDEX, scheduler=["diffusers", "EulerDiscreteScheduler"]),
                                    config(SCHEDULER, use_karras_sigmas=True, sigma_min=-1),
                                    option("--with-prior-preservation", "--class-num-inference-steps", "4")),
    "no scheduler": without("scheduler"),
    "more steps than the schedule has": both(
        config(SCHEDULER, num_train_timesteps=500), option("--with-prior-preservation", "--class-num-inference-steps", "600")),
    "too few steps for Runge-Kutta": both(config(SCHEDULER, skip_prk_steps=False),
                                          option("--with-prior-preservation", "--class-num-inference-steps", "2")),
    "steps beyond the schedule by their offset": both(
        config(SCHEDULER, steps_offset=5), option("--with-prior-preservation", "--class-num-inference-steps", "1000")),
    "more steps than noise levels": both(
        config(INDEX, scheduler=["diffusers", "DPMSolverMultistepScheduler"]),
        option("--with-prior-preservation", "--class-num-inference-steps", "1000")),
    "schedule that is clipped away": both(
        config(INDEX, scheduler=["diffusers", "DPMSolverMultistepScheduler"]), config(SCHEDULER, lambda_min_clipped=100),
        option("--with-prior-preservation", "--class-num-inference-steps", "4")),
    "more steps than LCM was distilled for": both(
        config(INDEX, scheduler=["diffusers", "LCMScheduler"]),
        option("--with-prior-preservation", "--class-num-inference-steps", "60")),
    "validation of more steps than LCM was distilled for": both(
        config(INDEX, scheduler=["diffusers", "LCMScheduler"]),
        option("--validation-prompt", "a photo", "--validation-inference-steps", "60")),
    "LCM distilled for more steps than the schedule has": both(
        config(INDEX, scheduler=["diffusers", "LCMScheduler"]), config(SCHEDULER, original_inference_steps=2000),
        option("--with-prior-preservation", "--class-num-inference-steps", "4")),
}

# With a tiny SDXL.
SDXL: dict[str, Fault] = {
    "width of the pooled text": config(UNET, projection_class_embeddings_input_dim=32),
    "no SDXL conditioning": config(UNET, addition_embed_type=None, projection_class_embeddings_input_dim=None,
                                   addition_time_embed_dim=None),
    "text width of both encoders": config(UNET, cross_attention_dim=16),
    "second tokenizer's length": config("tokenizer_2/tokenizer_config.json", model_max_length=120),
    "second tokenizer's merges": content("base/tokenizer_2/merges.txt", "#version: 0.2\na b c\n"),
    "no second text encoder": without("text_encoder_2"),
}
