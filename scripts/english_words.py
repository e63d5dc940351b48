"""The words that may not appear where people read, each with what to say, and the exceptions, each with its reason.

Read by scripts/check_english.py.
"""

from __future__ import annotations

import re


def _refuse(pattern: str, advice: str) -> tuple[re.Pattern[str], str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), advice


def _allow(where: str, text: str, reason: str) -> tuple[re.Pattern[str], re.Pattern[str], str]:
    return re.compile(where), re.compile(text, re.IGNORECASE), reason


# (what may not appear, what to say in its place)
REFUSED = [
    _refuse(r"pictures?", "image for pixels, photo for what the user gives"),
    _refuse(r"draws?|drawn|drawing|drew", "generate for images, render for the renderer; draw is for random numbers"),
    _refuse(r"judges?|judged|judging", "portrait classifier"),
    _refuse(r"strangers?", "identity outliers"),
    _refuse(r"hangs?|hung|hanging", "attach"),
    _refuse(r"takes? (?:it |them )?off|took off|taken off", "detach"),
    _refuse(r"nobody|somebody|no one|someone", "state the condition; unset: disabled"),
    _refuse(r"looks? at likeness|looking at likeness|the looks?|a look|each look|every look|looks(?! (?:for|up|keys up)\b)", "identity evaluation"),
    _refuse(r"how the noise is taken away", "sampler"),
    _refuse(r"reckons?|reckoned|reckoning", "estimate"),
    _refuse(r"text states?", "prompt embeddings"),
    _refuse(r"what is trained(?! (?:on|with)\b)", "trainable parameters"),
    _refuse(r"embedded base", "bundled base"),
    _refuse(r"every bit as it should be", "verified bit for bit"),
    _refuse(r"(?:does|do) not suit", "must be a multiple of N"),
    _refuse(r"(?:goes|go|going|went) on from", "resume from"),
    _refuse(r"where 1 % of others are|taken for the person|takes? .{1,20} for the person", "TAR at FAR 1 %"),
    _refuse(r"in any money", "machine price per hour, any currency"),
    _refuse(r"start (?:image|picture)", "init image"),
    _refuse(r"made-up", "synthetic"),
    _refuse(r"paid for|pays for", "state the cost"),
    _refuse(r"photo_exam|exam_\w+|exams?", "photo analysis, evaluation digest"),
    _refuse(r"for good|by heart|out of the box|under the hood|on the fly|rule of thumb|thr(?:ow|ows|own|owing) away|in the midst|front doors?|"
            r"speaks? of|larger than life", "no idioms"),
]

# (places, text that may stand there and that covers the word, why)
EXCEPTIONS = [
    _allow(r"", r"portrait-judge|judge\.json|judge\.safetensors|judge/(?:model/)?|`judge`|--(?:initial-|identity-)?judge(?:-[\w-]+)?|"
               r"--stage \S*judge|--output runs/judge|--(?:first|num|figure)-pictures?|Hang et al",
           "names of files, of a stage and of options that are kept for compatibility; an author"),
    _allow(r"", r"docs/pictures/[\w.]+|pictures/|--output pictures|\[pictures\]|scripts/draw_map\.py|draw_map",
           "names of folders, files and of the extra in pyproject.toml"),
    _allow(r"", r"a picture of|a (?:pencil|comic) drawing of", "captions that the bundled base was trained with"),
    _allow(r"_native.pyi$", r"def pictures\(|pictures: Sequence", "names of an attribute and an argument that are kept for compatibility"),
    _allow(r"", r"picture_[\w-]+\.json|bench\.py picture", "names of measurements that are committed"),
    _allow(r"", r"(?:random (?:draws?|numbers?)[^.;]*|draws? (?:of|from) (?:a|the) (?:generator|seed)[^.;]*|drawn (?:from|by) (?:a|the) "
               r"(?:seed|generator|counter)[^.;]*|counter-based draws?|draws? (?:random|noise|numbers)|noise (?:is|that is|was) drawn)",
           "random numbers"),
    _allow(r"^(?:model/(?:base/philox|clip|core|nn/initial_values|schedule|weights/load_module)|train/(?:data/(?:image_order|latent_cache)|"
           r"objective|parameters|run/held_out_loss|portrait/(?:classifier/augmentation|pretrain/(?:base_design|initial_weights)|"
           r"renderer/(?:caption|portrait_batch)|scene/person))|python/src/bind_(?:random|schedulers)|tests/)", r"draw(?:s|n|ing)?",
           "comments of sources and tests that draw random numbers"),
    _allow(r"", r"digest `exam`|identity\.jsonl: exam,", "a key of files that is kept for compatibility"),
    _allow(r"^(?:tests|scripts)/", r"JUDGE|[\w.\"`]*judge\w*\.(?:json|safetensors)|`judge`|`--stage judge`|portrait-judge", "names of files, of a variable of the shell and of a stage"),
    _allow(r"^scripts/.*\.sh$", r"/\{pictures,latents\}", "names of folders"),
    _allow(r"^train/(?:checkpoint|identity|portrait/(?:evaluate|pretrain))/|^train/data/latent_cache|^train/observe/report_data|"
           r"^app/(?:commands/eval_options|inspect/inspect_folder)|^python/src/bind_(?:observe|train)", r"^(?:exam|judge|pictures?)$",
           "keys of files and of JSON, names of folders, aliases, and an argument and an attribute of Python that are kept"),
    _allow(r"^CHANGELOG|^train/plan/plan_json|^tests/python/test_compatibility", r"\blooks\b|\breckoned\b",
           "keys of JSON that are kept beside their new names"),
    _allow(r"^scripts/draw_map", r"Draws the map", "a drawing"),
]
