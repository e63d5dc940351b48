"""How objects of the C++ core show themselves in a notebook: ValidationEvent, Problem, TrainConfig."""

from __future__ import annotations

from typing import Any

from . import _html, _native


def validation_repr(self: _native.ValidationEvent) -> str:
    """In a line."""
    loss = "" if self.loss is None else f", loss={self.loss:.4g}"
    return f"ValidationEvent(step={self.step}, {len(self.seeds)} images, seeds={list(self.seeds)}{loss})"


def validation_captions(event: _native.ValidationEvent) -> list[str]:
    """`seed 3: a photo of sks person` for each image."""
    return [f"seed {seed}: {prompt}" for seed, prompt in zip(event.seeds, event.prompts)]


def validation_html(self: _native.ValidationEvent) -> str:
    """The images with prompts and seeds."""
    loss = "" if self.loss is None else f", loss of the held-out photos {self.loss:.4g}"
    return f"<p>step {self.step}{loss}</p>" + _html.figures(self.images, validation_captions(self))


def validation_png(self: _native.ValidationEvent) -> bytes | None:
    """The images side by side."""
    return _html.png(_html.contact_sheet(self.images)) if self.seeds else None


def problem_html(self: _native.Problem) -> str:
    """A table of one row."""
    return _html.table(["where", "what is wrong", "what to do"], [(self.where, self.what, self.hint)])


def origin_text(name: str, origin: str) -> str:
    """An option that Python set has its own name as origin."""
    return "set here" if origin == name else origin


def config_html(self: _native.TrainConfig) -> str:
    """What differs from the built-in defaults, and where it came from."""
    options, values, origins = {option["name"]: option for option in self.options()}, self.to_dict(), self.origins()
    rows = [(name, "***" if options[name]["secret"] else values[name], options[name]["default"], options[name]["unit"], origin_text(name, origins[name]))
            for name in options if name in origins]
    return (_html.table(["option", "value", "default", "unit", "from"], rows)
            + f"<p>The other {len(options) - len(rows)} options have their defaults.</p>")


def add_views() -> None:
    """Gives the classes their methods; pybind11's are open to that."""
    views: dict[type, dict[str, Any]] = {
        _native.ValidationEvent: {"__repr__": validation_repr, "_repr_html_": validation_html, "_repr_png_": validation_png},
        _native.Problem: {"_repr_html_": problem_html},
        _native.TrainConfig: {"_repr_html_": config_html},
    }
    for kind, methods in views.items():
        for name, method in methods.items():
            setattr(kind, name, method)
