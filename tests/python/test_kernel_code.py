"""What nvcc makes of our CUDA kernels, as scripts/ptxas_table.py reads it: found where it spills or contracts, and committed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import ptxas_table  # noqa: E402

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")

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
    kernels, faults = ptxas_table.compile_all(["90"], [ROOT / "model/kernels/cuda/philox_normal.cu"])
    assert [kernel.name for kernel in kernels] == ["philox_normal_kernel"] and not faults


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
