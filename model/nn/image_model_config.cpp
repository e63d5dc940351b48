#include "model/nn/image_model_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace sdtune::model {

Activation read_activation(JsonObject& object) {
  const std::string name = object.string("act_fn", "silu");
  const std::optional<Activation> activation = activation_named(name);
  if (!activation || *activation == Activation::kQuickGelu) {
    object.fail("act_fn", "unknown activation (got " + name + "; allowed: silu, swish, gelu, relu, mish)");
  }
  return *activation;
}

std::int64_t read_sample_size(JsonObject& object, std::int64_t fallback, std::int64_t max) {
  if (object.raw("sample_size").is_null()) return fallback;
  const std::vector<std::int64_t> size = object.integers("sample_size");
  if (size.empty() || std::any_of(size.begin(), size.end(), [&](auto side) { return side != size.front(); })) {
    object.fail("sample_size", "only a square is supported (got " + object.raw("sample_size").dump() + ")");
  }
  object.check_range("sample_size", size.front(), 1, max);
  return size.front();
}

}  // namespace sdtune::model
