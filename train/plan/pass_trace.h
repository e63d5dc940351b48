// What one pass through a network costs, watched while it really runs: every tensor that LibTorch allocates on the CPU,
// and the floating-point operations of matrix products, convolutions and attention.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sdtune::train {

// A piece of a pass between two marks. Bytes count from the pass's beginning, so what was there before is not among
// them.
struct PassPiece {
  std::string name;
  std::int64_t peak_bytes = 0;  // the most that lived at once in it
  std::int64_t end_bytes = 0;   // what lived when it ended
};

struct PassCost {
  std::vector<PassPiece> pieces;  // in the order in which they ran
  // What the process grew by where the pass was run at its own size: with the gaps that the allocator leaves between
  // blocks, and what libraries allocate past LibTorch. 0: not known.
  std::int64_t resident_bytes = 0;
  double flops = 0;            // 2 a multiply-add; grows with the number of pixels
  double attention_flops = 0;  // of attention over pixels; grows with its square
  double text_flops = 0;       // of what ran in a TextScope; grows with the samples alone

  std::int64_t peak_bytes() const;
};

// Ends the piece before, and names the one that begins.
using MarkPiece = std::function<void(const std::string& name)>;

// While one lives, operations of the pass that is traced on this thread are those of text encoders: a run whose text
// encoders are not trained computes them once, before its steps, and an image's sampler before its first one.
class TextScope {
 public:
  TextScope();
  ~TextScope();
  TextScope(const TextScope&) = delete;
  TextScope& operator=(const TextScope&) = delete;
};

// Runs `pass` on this thread. It must free nothing that was allocated before it, and leave nothing behind.
PassCost trace_pass(const std::function<void(const MarkPiece&)>& pass);

}  // namespace sdtune::train
