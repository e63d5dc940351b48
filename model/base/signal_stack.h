// A stack of their own for signal handlers, so that none of their frames lands where interrupted code keeps its data.
#pragma once

#include <cstddef>
#include <vector>

namespace sdtune {

// While it lives, handlers installed with SA_ONSTACK run on it in the thread that made it. Some of oneDNN's kernels
// keep a pointer into the heap in the stack register (oneDNN issue 4845, in LibTorch 2.11's copy): the frame of a
// handler would overwrite that heap, and a run that was asked to stop would die instead of saving. A thread that has
// such a stack already keeps its own. Destroyed by the thread that made it.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::vector<std::byte> memory_;  // empty: not ours
};

}  // namespace sdtune
