// Whether float32 products and convolutions on a GPU may round their factors to TF32 (10 bits of mantissa, Ampere and
// later).
#pragma once

namespace sdtune::model {

// LibTorch's switches are the process's: of several scopes the newest's hold, whichever ends first, and they are what
// they were again when the last one has ended.
class Tf32Scope {
 public:
  explicit Tf32Scope(bool allowed);
  ~Tf32Scope();
  Tf32Scope(const Tf32Scope&) = delete;
  Tf32Scope& operator=(const Tf32Scope&) = delete;

 private:
  bool allowed_;
};

}  // namespace sdtune::model
