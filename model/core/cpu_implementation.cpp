#include "model/core/cpu_implementation.h"

#include <ATen/cpu/Utils.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "model/core/device.h"

namespace sdtune::model {
namespace {

// A bit a choice, which is set for its first value, and one above them all: known. 0: not known yet.
constexpr std::uint32_t kKnown = 1U << kCpuChoices.size();

std::atomic<std::uint32_t> now = 0;
std::atomic<CpuImplementation (*)()> source_of_process = nullptr;

// Those of several threads may end in any order.
struct ImplementationScopes {
  std::mutex mutex;
  std::vector<const CpuImplementationScope*> open;  // the newest last
  std::uint32_t outside = 0;                        // `now` before the first of them
};
ImplementationScopes implementation_scopes;

std::uint32_t bits_of(const CpuImplementation& implementation) {
  std::uint32_t bits = kKnown;
  for (std::size_t i = 0; i < kCpuChoices.size(); ++i) {
    if (implementation.*kCpuChoices[i].is_first) bits |= 1U << i;
  }
  return bits;
}

CpuImplementation of_bits(std::uint32_t bits) {
  CpuImplementation implementation;
  for (std::size_t i = 0; i < kCpuChoices.size(); ++i) {
    implementation.*kCpuChoices[i].is_first = (bits >> i & 1U) != 0;
  }
  return implementation;
}

// Its products of bfloat16 are many times as fast as those of float32, to which Winograd's would change.
bool has_amx() {
  static const auto features = at::cpu::get_cpu_capabilities();
  const auto found = features.find("amx_bf16");
  return found != features.end() && found->second.isBool() && found->second.toBool();
}

}  // namespace

CpuImplementation default_cpu_implementation() {
  CpuImplementation implementation;
#if defined(__x86_64__)
  const bool has_avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  implementation.onednn_products = has_avx512 && __builtin_cpu_is("intel") == 0;
#else
  implementation.onednn_products = false;
#endif
  implementation.bfloat16_winograd = !has_amx();
  return implementation;
}

std::string implementation_text(const CpuImplementation& implementation) {
  std::string text;
  for (const CpuChoice& choice : kCpuChoices) {
    text.append(text.empty() ? "" : ", ").append(choice.name).append(" ");
    text.append(choice.value_in(implementation));
  }
  return text;
}

CpuImplementation cpu_implementation() {
  const std::uint32_t bits = now.load(std::memory_order_relaxed);
  if (bits != 0) return of_bits(bits);
  CpuImplementation (*const source)() = source_of_process.load();
  const CpuImplementation found = source == nullptr ? default_cpu_implementation() : source();
  now.store(bits_of(found));
  return found;
}

void set_cpu_implementation_source(CpuImplementation (*source)()) {
  source_of_process.store(source);
  now.store(0);
}

torch::MemoryFormat map_memory_format(torch::Device device, torch::Dtype dtype) {
  if (!device.is_cpu()) return fast_memory_format(device, dtype);
  return cpu_implementation().channels_last_maps ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous;
}

CpuImplementationScope::CpuImplementationScope(const CpuImplementation& implementation) {
  const std::lock_guard lock(implementation_scopes.mutex);
  if (implementation_scopes.open.empty()) implementation_scopes.outside = now.load();
  implementation_scopes.open.push_back(this);
  bits_ = bits_of(implementation);
  now.store(bits_);
}

CpuImplementationScope::~CpuImplementationScope() {
  const std::lock_guard lock(implementation_scopes.mutex);
  std::erase(implementation_scopes.open, this);
  now.store(implementation_scopes.open.empty() ? implementation_scopes.outside
                                               : implementation_scopes.open.back()->bits_);
}

}  // namespace sdtune::model
