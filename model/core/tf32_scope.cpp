#include "model/core/tf32_scope.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <vector>

namespace sdtune::model {

namespace {

// LibTorch has an older switch (allow_tf32) and newer ones (fp32_precision) of one meaning. It refuses to read the
// older one where a process has set a newer one to something else.
struct Tf32Switches {
  bool products = false;           // cuBLAS; the newer switch, as the next two
  bool convolutions = false;       // cuDNN
  bool recurrent = false;          // cuDNN's recurrent networks
  bool products_agree = true;      // the older switch says the same
  bool convolutions_agree = true;  // of cuDNN as a whole
};

// Those of several threads may end in any order.
struct Tf32Scopes {
  std::mutex mutex;
  std::vector<const Tf32Scope*> open;  // the newest last
  Tf32Switches outside;                // before the first of them
};
Tf32Scopes tf32_scopes;

bool rounds_to_tf32(at::Float32Op op) {
  return at::globalContext().float32Precision(at::Float32Backend::CUDA, op) == at::Float32Precision::TF32;
}

void set_newer_switch(at::Float32Op op, bool allowed) {
  const auto precision = allowed ? at::Float32Precision::TF32 : at::Float32Precision::IEEE;
  at::globalContext().setFloat32Precision(at::Float32Backend::CUDA, op, precision);
}

bool older_switch_agrees(bool (*read)()) {
  try {
    read();
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

Tf32Switches read_switches() {
  return {.products = rounds_to_tf32(at::Float32Op::MATMUL),
          .convolutions = rounds_to_tf32(at::Float32Op::CONV),
          .recurrent = rounds_to_tf32(at::Float32Op::RNN),
          .products_agree = older_switch_agrees([] { return at::globalContext().allowTF32CuBLAS(); }),
          .convolutions_agree = older_switch_agrees([] { return at::globalContext().allowTF32CuDNN(); })};
}

// The functions of the older switches set the newer ones as well. An older one that does not agree is the opposite.
void set_switches(const Tf32Switches& switches) {
  at::globalContext().setAllowTF32CuBLAS(switches.products == switches.products_agree);
  at::globalContext().setAllowTF32CuDNN(switches.convolutions == switches.convolutions_agree);
  if (!switches.products_agree) set_newer_switch(at::Float32Op::MATMUL, switches.products);
  if (switches.convolutions_agree) return;
  set_newer_switch(at::Float32Op::CONV, switches.convolutions);
  set_newer_switch(at::Float32Op::RNN, switches.recurrent);
}

// Of everything, whatever the process has set for all operators together.
void set_all(bool allowed) {
  at::globalContext().setAllowTF32CuBLAS(allowed);
  at::globalContext().setAllowTF32CuDNN(allowed);
  for (const at::Float32Op op : {at::Float32Op::MATMUL, at::Float32Op::CONV, at::Float32Op::RNN}) {
    set_newer_switch(op, allowed);
  }
}

}  // namespace

Tf32Scope::Tf32Scope(bool allowed) : allowed_(allowed) {
  const std::lock_guard<std::mutex> lock(tf32_scopes.mutex);
  if (tf32_scopes.open.empty()) tf32_scopes.outside = read_switches();
  tf32_scopes.open.push_back(this);
  set_all(allowed);
}

Tf32Scope::~Tf32Scope() {
  const std::lock_guard<std::mutex> lock(tf32_scopes.mutex);
  std::erase(tf32_scopes.open, this);
  if (tf32_scopes.open.empty()) {
    set_switches(tf32_scopes.outside);
  } else {
    set_all(tf32_scopes.open.back()->allowed_);
  }
}

}  // namespace sdtune::model
