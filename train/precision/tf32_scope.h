// Whether float32 products on a GPU may round their factors to TF32 (10 bits of mantissa, Ampere and later).
#pragma once

namespace sdtune::train {

// LibTorch's switch is the process's: it is what it was again when the scope ends.
class Tf32Scope {
 public:
  explicit Tf32Scope(bool allowed);
  ~Tf32Scope();
  Tf32Scope(const Tf32Scope&) = delete;
  Tf32Scope& operator=(const Tf32Scope&) = delete;

 private:
  bool before_;
};

}  // namespace sdtune::train
