// Which of several implementations of an operator a process takes on the CPU, where the fastest one depends on the kind
// of processor. They compute the same but for rounding: a run goes on with what it began with.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sdtune::model {

struct CpuImplementation {
  bool tiled_attention = true;  // ours (kernels/attention.h), else LibTorch's
  bool onednn_products = true;  // of float32 matrices where oneDNN has AVX-512 (kernels/matrix_product.h), else MKL's
  bool patch_convolutions = true;     // of few pixels (kernels/conv2d.h), else oneDNN's
  bool channels_last_maps = true;     // the memory order of feature maps, else contiguous
  bool winograd_convolutions = true;  // 3 x 3 of large maps (kernels/winograd_conv2d.h), else products one by one
  bool bfloat16_pairs = true;         // attention's products where the CPU has instructions for them, else float32
  bool backward_pairs = true;         // the same of its backward pass
  bool bfloat16_patches = true;       // convolutions of few pixels in bfloat16 (kernels/conv2d.h), else oneDNN's
  bool heads_of_four = true;          // tiled attention of heads of a multiple of 4 numbers, else of 8
  bool causal_tiles = true;           // tiled attention where later keys are hidden, else LibTorch's
  bool small_products = true;         // ours where is_small_product() (products/small_product.h), else a library's
  bool bfloat16_winograd = true;      // as winograd_convolutions, of maps in bfloat16
  bool short_exponentials = true;     // where attention by pairs rounds them anyway, else to a float32's last place
  bool winograd_panels = true;  // kernels as the products of small maps read them (kernels/winograd_panels.h), else all

  bool operator==(const CpuImplementation&) const = default;
};

// One of the choices, under the names that tables of processors and records of runs have.
struct CpuChoice {
  const char* name;
  bool CpuImplementation::*is_first;
  std::array<std::string_view, 2> values;
  bool came_later = false;  // records of runs before it lack it, and mean the second value

  std::string_view value_in(const CpuImplementation& implementation) const {
    return values[implementation.*is_first ? 0 : 1];
  }
  // False for what is none of the values.
  bool set(CpuImplementation& implementation, std::string_view value) const {
    implementation.*is_first = value == values[0];
    return value == values[0] || value == values[1];
  }
};

inline constexpr std::array kCpuChoices = {
    CpuChoice{"attention", &CpuImplementation::tiled_attention, {"tiled", "library"}},
    CpuChoice{"products", &CpuImplementation::onednn_products, {"onednn", "mkl"}},
    CpuChoice{"convolutions", &CpuImplementation::patch_convolutions, {"patches", "library"}},
    CpuChoice{"layout", &CpuImplementation::channels_last_maps, {"channels_last", "contiguous"}},
    CpuChoice{"convolutions_3x3", &CpuImplementation::winograd_convolutions, {"winograd", "direct"}, true},
    CpuChoice{"attention_bfloat16", &CpuImplementation::bfloat16_pairs, {"pairs", "float32"}, true},
    CpuChoice{"attention_backward_bfloat16", &CpuImplementation::backward_pairs, {"pairs", "float32"}, true},
    CpuChoice{"convolutions_bfloat16", &CpuImplementation::bfloat16_patches, {"patches", "library"}, true},
    CpuChoice{"attention_heads", &CpuImplementation::heads_of_four, {"multiples_of_4", "multiples_of_8"}, true},
    CpuChoice{"attention_causal", &CpuImplementation::causal_tiles, {"tiled", "library"}, true},
    CpuChoice{"small_products", &CpuImplementation::small_products, {"registers", "library"}, true},
    CpuChoice{"convolutions_3x3_bfloat16", &CpuImplementation::bfloat16_winograd, {"winograd", "direct"}, true},
    CpuChoice{"attention_exponential_bfloat16", &CpuImplementation::short_exponentials, {"short", "long"}, true},
    CpuChoice{"convolutions_3x3_kernels", &CpuImplementation::winograd_panels, {"panels", "whole"}, true},
};

// For a kind of processor that nothing was measured on: ours; products by oneDNN with AVX-512, which MKL keeps its
// kernels of for Intel's processors, and by MKL else.
CpuImplementation default_cpu_implementation();

// "attention tiled, products mkl, convolutions patches, layout channels_last, convolutions_3x3 winograd,
// attention_bfloat16 pairs, attention_backward_bfloat16 pairs, convolutions_bfloat16 patches,
// attention_heads multiples_of_4, attention_causal tiled, small_products registers, convolutions_3x3_bfloat16
// winograd, attention_exponential_bfloat16 short, convolutions_3x3_kernels panels".
std::string implementation_text(const CpuImplementation& implementation);

// What holds now: that of the innermost scope, else what the process's source says, which is asked once, else the
// default. Throws as the source.
CpuImplementation cpu_implementation();

// Where a process's choice is from, for example a table of processors; before anything is computed.
void set_cpu_implementation_source(CpuImplementation (*source)());

// The memory order of the feature maps between a network's layers: on a CPU that of cpu_implementation(), on a GPU
// fast_memory_format (device.h).
torch::MemoryFormat map_memory_format(torch::Device device, torch::Dtype dtype);

// While one lives, this implementation holds for the whole process: of several the newest's, whichever ends first. Not
// while networks run in other threads with another one.
class CpuImplementationScope {
 public:
  explicit CpuImplementationScope(const CpuImplementation& implementation);
  ~CpuImplementationScope();
  CpuImplementationScope(const CpuImplementationScope&) = delete;
  CpuImplementationScope& operator=(const CpuImplementationScope&) = delete;

 private:
  std::uint32_t bits_;
};

}  // namespace sdtune::model
