"""What nvcc makes of our CUDA kernels, as scripts/ptxas_table.py reads it: found where it spills or contracts, and committed."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from test_cuda_build import LIBRARY, cuobjdump

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import ptxas_table  # noqa: E402

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")

RELEASE = re.compile(r"with nvcc ([\d.]+)")

SPILLING = """__launch_bounds__(1024, 2) __global__ void many_kernel(float* x) {
  float a[96];
  for (int i = 0; i < 96; ++i) a[i] = x[threadIdx.x + i * 1024];
  __syncthreads();
  for (int i = 0; i < 96; ++i) x[threadIdx.x * 96 + i] = a[95 - i] * a[i] + a[(i * 7) % 96];
}
"""
CONTRACTING = "__global__ void fused_kernel(float* x) { x[0] = x[1] * x[2] + x[3]; }\n"


def test_kernel_names_are_readable() -> None:
    assert ptxas_table.kernel_name(
        "_ZN6sdtune5model54_GLOBAL__N__78597386_21_group_norm_forward_cu_f259e30313output_kernelI13__nv_bfloat16Li8ELb1EEEvPKT_PS4_"
        "PKfNS0_12GroupNormCutE") == "output_kernel<bfloat16, 8, nhwc>"
    assert ptxas_table.kernel_name(
        "_ZN6sdtune5train40_GLOBAL__N__fdab2530_8_adamw_cu_77e6da7e12adamw_kernelI6__halfS3_EEvPKNS0_13CudaParameterE") == \
        "adamw_kernel<float16, float16>"


@pytest.mark.parametrize(("instruction", "found"), [
    ("fma.rn.f32 %f1, %f2, %f3, %f4;", True), ("mad.f32 %f1, %f2, %f3, %f4;", True), ("fma.rn.ftz.f32 %f1, %f2, %f3, %f4;", True),
    ("fma.rn.f64 %fd1, %fd2, %fd3, %fd4;", False), ("mad.lo.s32 %r1, %r2, %r3, %r4;", False), ("mul.f32 %f1, %f2, %f3;", False)])
def test_fused_instructions_on_float32_are_found(instruction: str, found: bool) -> None:
    assert bool(ptxas_table.FUSED.search(instruction)) == found


@needs_nvcc
def test_random_numbers_hold_no_fused_multiply_add() -> None:
    """On any architecture: nvcc makes PTX of its own for each."""
    architectures = ptxas_table.release_architectures()
    kernels, faults = ptxas_table.compile_all(architectures, [ROOT / "model/kernels/cuda/philox_normal.cu"])
    assert sorted((kernel.name, kernel.arch) for kernel in kernels) == sorted(("philox_normal_kernel", arch) for arch in architectures)
    assert not faults


@needs_nvcc
def test_the_ptx_of_every_architecture_is_searched(tmp_path: Path) -> None:
    """A contraction on one architecture alone."""
    source = tmp_path / "one.cu"
    source.write_text("""__global__ void one_kernel(float* x) {
#if __CUDA_ARCH__ == 860
  x[0] = __fmaf_rn(x[1], x[2], x[3]);
#else
  x[0] = __fadd_rn(__fmul_rn(x[1], x[2]), x[3]);
#endif
}
""")
    for architectures, found in ((["75", "86", "90"], True), (["75", "90"], False)):
        with tempfile.TemporaryDirectory() as folder:
            report, ptx = ptxas_table.compile_source(source, architectures, False, Path(folder))
        assert ptx.count(".entry") == len(architectures)
        assert bool(ptxas_table.faults_of("one.cu", ptxas_table.parse_ptxas(report), ptx, False)) == found


def built_kernels() -> list[ptxas_table.Kernel]:
    if not LIBRARY.is_file():
        pytest.skip("this build has no CUDA kernels: SDTUNE_CUDA=ON")
    return ptxas_table.parse_usage(cuobjdump("-res-usage"))


def test_no_kernel_of_the_library_spills() -> None:
    """On the code that users get, for all six architectures."""
    kernels = built_kernels()
    by_arch = {arch: {kernel.name for kernel in kernels if kernel.arch == arch} for arch in ptxas_table.release_architectures()}
    assert kernels and all(names == by_arch["75"] for names in by_arch.values()) and len(by_arch["75"]) * 6 == len(kernels)
    assert [kernel for kernel in kernels if kernel.spilled > 0] == []


def test_the_library_uses_what_the_table_says() -> None:
    """Registers and shared memory of each kernel; a change of a kernel shows in the diff of its table."""
    built = {(kernel.name, kernel.arch): (kernel.registers, kernel.shared) for kernel in built_kernels()}
    text = ptxas_table.TABLE.read_text()
    if f"V{RELEASE.search(text)[1]}".encode() not in LIBRARY.read_bytes():
        pytest.skip("another release of nvcc than the table's built the library, and allots other registers")
    table = ptxas_table.read_table(text)
    assert len(table) == len(built)
    assert {key: (built.get(key), table.get(key)) for key in {*built, *table} if built.get(key) != table.get(key)} == {}


def test_spills_and_other_registers_are_read() -> None:
    """What cuobjdump prints of a kernel that spills."""
    text = """
Fatbin elf code:
================
arch = sm_86
code version = [1,8]

Resource usage:
 Common:
  GLOBAL:0
 Function _Z11many_kernelPf:
  REG:32 STACK:296 SHARED:64 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
    assert ptxas_table.parse_usage(text) == [ptxas_table.Kernel("many_kernel", "86", 32, 64, 296)]
    kernels = [ptxas_table.Kernel("a_kernel", "75", 20, 64, 0), ptxas_table.Kernel("a_kernel", "90", 22, 64, 0)]
    lines = ["| kernel | shared memory, bytes | sm_75 | sm_90 |", "|---|---:|---:|---:|", "| `a_kernel` | 64 | 20 | 22 |"]
    assert ptxas_table.read_table("\n".join(lines)) == {(kernel.name, kernel.arch): (kernel.registers, 64) for kernel in kernels}


@needs_nvcc
def test_planted_spill_and_contraction_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spilling, contracting = tmp_path / "spilling.cu", tmp_path / "contracting.cu"
    spilling.write_text(SPILLING)
    contracting.write_text(CONTRACTING)
    _, faults = ptxas_table.compile_all(["90"], [spilling])
    assert len(faults) == 1 and "many_kernel spills" in faults[0]
    assert not ptxas_table.compile_all(["90"], [contracting])[1], "elsewhere it may"
    report, ptx = ptxas_table.compile_source(contracting, ["90"], True, tmp_path)
    assert "its PTX holds fma.rn.f32" in ptxas_table.faults_of("x.cu", ptxas_table.parse_ptxas(report), ptx, False)[0]


def test_table_is_committed_for_every_architecture_of_a_release() -> None:
    text = ptxas_table.TABLE.read_text()
    assert all(f" sm_{arch} |" in text for arch in ptxas_table.release_architectures())
    sources = "".join(path.read_text() for folder in ptxas_table.FOLDERS for path in (ROOT / folder).glob("*.cu"))
    kernels = {name for name in ptxas_table.re.findall(r"__global__ void (\w+)\(", sources)}
    assert kernels and all(f"`{kernel}" in text for kernel in kernels)
