"""The checks of the house find what they are for, and let pass what is allowed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from program import ROOT, run

sys.path.insert(0, str(ROOT / "scripts"))

import check_english  # noqa: E402
import check_layers  # noqa: E402
import draw_map  # noqa: E402
import lint_groups  # noqa: E402
from english_words import EXCEPTIONS  # noqa: E402


def words_found(text: str, place: str = "docs/page.md") -> list[str]:
    """The refused words in a line, in the order of the list."""
    return [re.search(r': "([^"]+)": ', message)[1] for _, message in check_english.offences(iter([(place, 1, text)]))]


@pytest.mark.parametrize(("text", "found"), [
    ("Draws pictures of a prompt.", ["pictures", "Draws"]),
    ("How the noise is taken away.", ["How the noise is taken away"]),
    ("none: nobody looks", ["nobody", "looks"]),
    ("the judge reads it", ["judge"]),
    ("the embedded base", ["embedded base"]),
    ("reckon what less memory would do", ["reckon"]),
    ("hangs a LoRA on the model", ["hangs"]),
    ("Generates images from a prompt.", []),
    ("the numbers of models/portrait-judge, in judge.json", []),
    ("trained with the caption 'a picture of sks person'", []),
    ("every random draw has a key of its own", []),
])
def test_english_finds_refused_words_only(text: str, found: list[str]) -> None:
    assert words_found(text) == found


def test_english_reads_strings_and_not_comments_of_cpp() -> None:
    text = '// draws a picture\nauto a = "draws two"; /* "drawn one" */ auto b = R"(a picture (x))"; char c = \'"\'; auto d = "key";'
    literals = [match.group(3) if match.group(3) is not None else match.group(2) for match in check_english.CPP_TEXT.finditer(text)]
    assert [literal for literal in literals if literal] == ["draws two", "a picture (x)", "key"]


def test_english_reads_comments_and_docstrings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, text in {"model/image/a.h": 'int x;  // draws a picture\nauto a = "key";\n',
                        "scripts/a.py": '"""Draws it."""\nx = "drawn"  # a picture\n'}.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    monkeypatch.setattr(check_english, "ROOT", tmp_path)
    assert list(check_english.comment_texts()) == [("model/image/a.h", 1, "// draws a picture")]
    assert list(check_english.docstring_texts()) == [("scripts/a.py", 1, '"""Draws it."""'), ("scripts/a.py", 2, "# a picture")]
    assert words_found("// draws a picture", "model/image/a.h") == ["picture", "draws"]
    assert words_found("// draws a number", "model/core/random.h") == []


def test_english_reads_the_cells_of_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples/notebooks").mkdir(parents=True)
    cells = [{"source": ["# Draw\n", "it"]}, {"source": "x = 1", "outputs": [{"text": "a picture"}]}]
    (tmp_path / "examples/notebooks/a.ipynb").write_text(json.dumps({"cells": cells}))
    monkeypatch.setattr(check_english, "ROOT", tmp_path)
    place = "examples/notebooks/a.ipynb"
    assert list(check_english.notebook_texts()) == [(place, 1, "# Draw"), (place, 2, "it"), (place, 3, "x = 1")]


def test_english_reads_the_help_of_every_command() -> None:
    """tune-machine's too: those of the reference, which the program makes of its commands."""
    headings = re.findall(r"^## sdtune (\S+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE)
    assert check_english.commands_in(run(["--help"]).stdout.splitlines()) == headings
    assert any("-" in heading for heading in headings)


def test_english_reads_files_by_each_of_its_patterns() -> None:
    """A pattern that no file has would leave unread what was moved."""
    patterns = [*check_english.PAGES, *check_english.PLAIN, check_english.NOTEBOOKS, *check_english.COMMENTED, *check_english.PYTHON,
                *check_english.STUBS]
    assert [pattern for pattern in patterns if not any(ROOT.glob(pattern))] == []


def test_every_exception_has_a_reason() -> None:
    assert all(len(reason.split()) >= 2 for _, _, reason in EXCEPTIONS)


@pytest.mark.parametrize(("length", "code"), [(72, 0), (73, 1)])
def test_subjects_have_72_characters_at_most(tmp_path: Path, length: int, code: int) -> None:
    (tmp_path / "message").write_text("x" * length + "\n\nA body may be longer, as long as it takes to say why.\n" + "y" * 100)
    done = subprocess.run([sys.executable, str(ROOT / "scripts/check_subjects.py"), "--message", str(tmp_path / "message")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == code


def test_cycles_between_folders_are_found() -> None:
    assert check_layers.cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert not check_layers.cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_map_has_each_room_once_and_only_includes_that_follow_from_no_other() -> None:
    assert draw_map.reduced({"a": set(), "b": {"a"}, "c": {"a", "b"}}) == {"a": set(), "b": {"a"}, "c": {"b"}}
    names = re.findall(r'text-anchor="middle">([^<]+)<', draw_map.map_svg())
    assert len(names) == len(check_layers.ALLOWED)


@pytest.mark.parametrize(("path", "line", "found"), [
    ("train/optim/cuda/adamw.cu", "adamw_kernel<<<grid, kThreads>>>(parameters);", True),
    ("model/core/random.cpp", "cudaLaunchKernel(function, grid, block, arguments, 0, stream);", True),
    ("train/dist/cuda/nccl_backend.cpp", "cuLaunchKernel (f, 1, 1, 1);", True),
    ("model/kernels/cuda/launch.cuh", "cudaLaunchKernelEx(&config, kernel);", False),
    ("tests/gpu/host/cuda_runtime.h", "cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config);", False),
    ("model/kernels/cuda/geglu.cu", "// kernel<<<grid>>> is what launch() does", False),
])
def test_a_launch_elsewhere_is_found(path: str, line: str, found: bool) -> None:
    offences = check_layers.launch_offences(Path(path), "#include <a>\n" + line + "\n")
    assert [offence.split(": ")[0] for offence in offences] == ([f"{path}:2"] if found else [])


@pytest.mark.parametrize(("path", "line", "found"), [
    ("train/run/prepare.cpp", 'const auto device = model::parse_device(text, "device");', True),
    ("train/run/prepare.cpp", 'model::parse_device(text, "device"); const model::Tf32Scope tf32(false);', False),
    ("train/run/prepare.cpp", 'model::parse_device(text, "device"); // a Tf32Scope', True),
    ("app/commands/eval_command.cpp", "model::find_device(text);", False),
    ("python/src/pipeline.cpp", 'model::parse_device(text, "device");', False),  # ComputeScope of every call
])
def test_a_device_without_a_rule_for_float32_is_found(path: str, line: str, found: bool) -> None:
    """cuDNN rounds float32 convolutions to TF32 by default."""
    assert check_layers.precision_offences(Path(path), line + "\n") == ([f"{path}: computes on a device of its own without a Tf32Scope"]
                                                                        if found else [])


def test_lint_refuses_the_commands_of_another_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    """clang-tidy would get no source, and so find nothing."""
    commands, here = tmp_path / "compile_commands.json", str(ROOT / "model/base/json.cpp")
    monkeypatch.setattr(sys, "argv", ["lint_groups.py", str(tmp_path), "--free"])
    commands.write_text(json.dumps([{"file": here}, {"file": "/elsewhere/model/base/json.cpp"}]))
    lint_groups.main()
    assert capsys.readouterr().out == here + "\n"
    commands.write_text(json.dumps([{"file": "/elsewhere/model/base/json.cpp"}]))
    with pytest.raises(SystemExit, match="names no source"):
        lint_groups.main()


def test_every_folder_of_cpp_tests_is_a_test_of_ctest() -> None:
    """One that tests/CMakeLists.txt does not name would never be compiled."""
    ctest = Path(sys.executable).parent / "ctest"
    listing = subprocess.run([ctest, "--test-dir", ROOT / "build", "--show-only=json-v1"], capture_output=True, text=True,
                             check=True).stdout
    names = {test["name"] for test in json.loads(listing)["tests"]}
    folders = {path.parent.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("*_test.cpp")}
    own = {"app/cli": "test_app", "app/ui": "test_app"}
    assert len(folders) > 40 and "train/portrait/scene" in folders
    assert sorted(folder for folder in folders if own.get(folder, f"test_{folder.split('/')[-1]}") not in names) == []


SKIPS = {"an import": 'import pytest\n\npytest.importorskip("no_module_of_this_name")\n',
         "a test": 'import pytest\n\n\ndef test_it() -> None:\n    pytest.skip("no nvcc")\n',
         "an allowed one": 'import pytest\n\n\ndef test_it() -> None:\n    pytest.skip("no photo beside this checkout")\n'}


@pytest.mark.parametrize("name", SKIPS)
def test_ci_fails_where_a_test_is_skipped(name: str, tmp_path: Path) -> None:
    """A whole file too, of which no test is reported; elsewhere a skip is none of its business."""
    shutil.copy(ROOT / "tests/python/conftest.py", tmp_path)
    (tmp_path / "test_skipped.py").write_text(SKIPS[name])
    (tmp_path / "test_other.py").write_text("def test_it() -> None:\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    allowed, refused = (subprocess.run(command, cwd=tmp_path, env={**os.environ, "SDTUNE_NO_SKIP": no_skip}, capture_output=True, text=True,
                                       check=False) for no_skip in ("0", "1"))
    assert allowed.returncode == 0, allowed.stdout
    assert (refused.returncode == 0) == (name == "an allowed one"), refused.stdout
    assert ("SDTUNE_NO_SKIP=1 allows none" in refused.stdout) == (name != "an allowed one")
