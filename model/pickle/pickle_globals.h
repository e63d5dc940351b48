// The names that a pickle of tensors may contain, and what the reader makes of each. Nothing is imported or called.
#pragma once

#include <string>
#include <string_view>

namespace sdtune {

enum class PickleRole {
  kTensor,       // torch._utils._rebuild_tensor_v2
  kTypedTensor,  // torch._utils._rebuild_tensor_v3: the dtype is given
  kParameter,    // torch._utils._rebuild_parameter: its first argument
  kStorage,      // torch.FloatStorage and so on; `dtype`
  kDtype,        // torch.float32 and so on; `dtype`
  kMapping,      // collections.OrderedDict
  kSize,         // torch.Size: the tuple that it is made of
  kInert,        // what checkpoints hold beside the tensors (NumPy's numbers, a callback's class): kept as a mark only
};

struct PickleGlobal {
  std::string_view module;
  std::string_view name;
  PickleRole role = PickleRole::kInert;
  std::string_view dtype;  // in safetensors' names (F32); empty: bytes without a type, or a dtype that is not read
};

// The entry for module.name; null for every other name, which the reader refuses.
const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name);

}  // namespace sdtune
