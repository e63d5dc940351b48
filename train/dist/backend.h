// What carries the bytes: made once, used through c10d's common interface.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>

namespace sdtune::train {

struct BackendRequest {
  c10::intrusive_ptr<c10d::Store> store;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::chrono::milliseconds timeout{};  // of each operation
};

// Gloo over TCP, by the interfaces of network_interfaces.h.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const BackendRequest& request);

// The C symbol of libsdtune_cuda.so that makes NCCL's backend (train/dist/cuda/nccl_backend.cpp).
using NcclFactory = c10d::Backend* (*)(const BackendRequest&);  // the caller owns one reference
inline constexpr const char* kNcclFactorySymbol = "sdtune_nccl_backend";

}  // namespace sdtune::train
