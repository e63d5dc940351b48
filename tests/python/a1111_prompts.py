"""AUTOMATIC1111's prompt rules stated anew, on top of transformers' CLIP: the oracle of weighted prompts.

Written from the rules in docs/prompts.md, letter by letter and with lists, so that it shares no structure with ours.
"""

from __future__ import annotations

import re
from typing import Any

import torch

CHUNK = 75
COMMA_REACH = 20
NUMBER = re.compile(r":\s*([+-]?[.\d]+)\s*\)")
BREAK = None  # in the place of a text


def weigh_letters(prompt: str) -> list[tuple[str, float]]:
    """Each letter of the prompt that is left when the marks are taken out, with its weight."""
    letters: list[str] = []
    weights: list[float] = []
    opened: dict[str, list[int]] = {"(": [], "[": []}

    def close(kind: str, factor: float) -> None:
        for i in range(opened[kind].pop(), len(weights)):
            weights[i] *= factor

    at = 0
    while at < len(prompt):
        rest = prompt[at:]
        number = NUMBER.match(rest)
        if rest[0] == "\\":
            letter = rest[1] if len(rest) > 1 and rest[1] in "()[]\\" else ""
            at += 1 + len(letter)
            letters.append(letter)
            weights.append(1.0)
            continue
        if rest[0] in opened:
            opened[rest[0]].append(len(letters))
        elif number and opened["("]:
            close("(", float(number[1]))
            at += len(number[0])
            continue
        elif rest[0] == ")" and opened["("]:
            close("(", 1.1)
        elif rest[0] == "]" and opened["["]:
            close("[", 1 / 1.1)
        else:
            letters.append(rest[0])
            weights.append(1.0)
        at += 1
    while opened["("]:
        close("(", 1.1)
    while opened["["]:
        close("[", 1 / 1.1)
    return list(zip(letters, weights))


def texts_of_one_weight(prompt: str) -> list[tuple[str | None, float]]:
    """(text, weight) in order; (BREAK, 1) where a chunk ends. BREAK must not stand beside a bracket."""
    texts: list[tuple[str | None, float]] = []
    for part_number, part in enumerate(re.split(r"\s*\bBREAK\b\s*", prompt)):
        if part_number:
            texts.append((BREAK, 1.0))
        runs: list[list[Any]] = []
        for letter, weight in weigh_letters(part):
            if runs and runs[-1][1] == weight:
                runs[-1][0] += letter
            else:
                runs.append([letter, weight])
        texts += [(text, weight) for text, weight in runs]
    return texts


def chunks_of(tokenizer: Any, prompt: str, comma_reach: int = COMMA_REACH) -> list[list[tuple[int, float]]]:
    """The chunks' words as (id, weight), at most 75 a chunk, without start, end and padding."""
    comma = tokenizer(",", add_special_tokens=False).input_ids[0]
    done: list[list[tuple[int, float]]] = []
    words: list[tuple[int, float]] = []
    for text, weight in texts_of_one_weight(prompt):
        if text is BREAK:
            done.append(words)
            words = []
            continue
        for word in tokenizer(text, add_special_tokens=False, truncation=False).input_ids:
            if len(words) == CHUNK:
                commas = [i for i, (id_, _) in enumerate(words) if id_ == comma]
                cut = CHUNK
                if word != comma and commas and CHUNK - commas[-1] <= comma_reach:
                    cut = commas[-1] + 1
                done.append(words[:cut])
                words = words[cut:]
                if len(words) == CHUNK:
                    raise AssertionError("a chunk of nothing")
            words.append((word, weight))
    return done + [words] if words or not done else done


def framed(tokenizer: Any, words: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    rest = CHUNK - len(words)
    ids = [tokenizer.bos_token_id, *(id_ for id_, _ in words), tokenizer.eos_token_id] + [tokenizer.pad_token_id] * rest
    return ids, [1.0, *(weight for _, weight in words), 1.0] + [1.0] * rest


def encoders_of(pipe: Any) -> list[tuple[Any, Any]]:
    pairs = [(pipe.tokenizer, pipe.text_encoder)]
    return pairs + [(pipe.tokenizer_2, pipe.text_encoder_2)] if hasattr(pipe, "text_encoder_2") else pairs


def chunk_count(pipe: Any, prompt: str) -> int:
    return max(len(chunks_of(tokenizer, prompt)) for tokenizer, _ in encoders_of(pipe))


@torch.no_grad()
def encode(pipe: Any, prompt: str, count: int = 0, clip_skip: int = 0, keep_mean: bool = True,
           comma_reach: int = COMMA_REACH) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(states [1, chunks x 77, D], pooled) of diffusers' pipeline; at least `count` chunks, filled up with empty ones.

    `clip_skip` as diffusers counts. Emphasis "Original": each chunk of each encoder keeps its mean.
    """
    encoders = encoders_of(pipe)
    states, pooled = [], None
    for tokenizer, encoder in encoders:
        chunks = chunks_of(tokenizer, prompt, comma_reach)
        chunks += [[]] * (count - len(chunks))
        parts = []
        for number, words in enumerate(chunks):
            ids, weights = framed(tokenizer, words)
            out = encoder(torch.tensor([ids]), output_hidden_states=True)
            if len(encoders) == 2:
                state = out.hidden_states[-2 - clip_skip]
                if number == 0 and encoder is encoders[-1][1]:
                    pooled = out.text_embeds
            else:
                model = getattr(encoder, "text_model", encoder)
                state = model.final_layer_norm(out.hidden_states[-1 - clip_skip])
            weighted = state * torch.tensor(weights)[None, :, None]
            parts.append(weighted * (state.mean() / weighted.mean()) if keep_mean else weighted)
        states.append(torch.cat(parts, 1))
    return torch.cat(states, -1), pooled
