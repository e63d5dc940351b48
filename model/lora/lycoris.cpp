#include "model/lora/lycoris.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <initializer_list>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

constexpr std::int64_t kMostOfAProduct = std::int64_t{1} << 28;  // of a product; SDXL's largest layer has 2^25

struct Delta {
  torch::Tensor weight;  // without alpha / rank; any shape with the right count
  std::int64_t rank;     // 0: alpha has no say
};

class Factors {
 public:
  Factors(const LycorisFactors& factors, const std::vector<std::int64_t>& shape, const std::string& where)
      : factors_(factors), shape_(shape), where_(where) {}

  bool has(const std::string& name) const { return factors_.contains(name); }
  torch::Tensor operator[](const std::string& name) const {
    const auto found = factors_.find(name);
    if (found == factors_.end()) throw WeightError(where_, "has no " + name, "the file is incomplete");
    return found->second.to(torch::kFloat32);
  }
  // Throws for a product with these sides that would fill the memory: a file of a few hundred bytes can have factors of
  // a million rows, of no columns.
  void check_product(std::initializer_list<std::int64_t> sides) const {
    std::int64_t numbers = 1, layer = 1;
    for (const std::int64_t side : shape_) layer *= side;
    for (const std::int64_t side : sides) {
      if (!__builtin_mul_overflow(numbers, side, &numbers) && numbers <= std::max(layer, kMostOfAProduct)) continue;
      throw WeightError(where_, "has factors whose product is larger than any layer", "the file is damaged");
    }
  }

 private:
  const LycorisFactors& factors_;
  const std::vector<std::int64_t>& shape_;
  const std::string& where_;
};

// a [r1, out], b [r2, in], core [r1, r2, k, k] -> [out, in, k, k].
torch::Tensor tucker(const Factors& factors, const torch::Tensor& core, const torch::Tensor& a,
                     const torch::Tensor& b) {
  factors.check_product({core.size(1), core.size(2), core.size(3), a.size(1)});
  factors.check_product({a.size(1), b.size(1), core.size(2), core.size(3)});
  return torch::einsum("ijkl,ip,jr->prkl", {core, a, b}).contiguous();  // kron wants it so
}

torch::Tensor flat_product(const Factors& factors, const torch::Tensor& a, const torch::Tensor& b) {
  const torch::Tensor flat = b.flatten(1);
  factors.check_product({a.size(0), flat.size(1)});
  return torch::mm(a, flat);
}

torch::Tensor kron_of(const Factors& factors, const torch::Tensor& left, const torch::Tensor& right) {
  factors.check_product({left.numel(), right.numel()});
  return torch::kron(left, right);
}

Delta loha(const Factors& factors) {
  const auto half = [&](const std::string& number) {
    const torch::Tensor a = factors["hada_w" + number + "_a"], b = factors["hada_w" + number + "_b"];
    const std::string core = "hada_t" + number;
    return factors.has(core) ? tucker(factors, factors[core], a, b) : flat_product(factors, a, b);
  };
  const torch::Tensor first = half("1"), second = half("2");
  TORCH_CHECK(first.sizes() == second.sizes(), "a row times a column is a matrix, which may be large");
  return {first * second, factors["hada_w1_b"].size(0)};
}

Delta lokr(const Factors& factors) {
  std::int64_t rank = 0;
  const auto factor = [&](const std::string& name, const std::string& core) {
    if (factors.has(name)) return factors[name];
    const torch::Tensor a = factors[name + "_a"], b = factors[name + "_b"];
    rank = b.size(0);
    return factors.has(core) ? tucker(factors, factors[core], a, b) : flat_product(factors, a, b);
  };
  const torch::Tensor left = factor("lokr_w1", "lokr_t1"), right = factor("lokr_w2", "lokr_t2");
  if (right.dim() == 4) return {kron_of(factors, left.view({left.size(0), left.size(1), 1, 1}), right), rank};
  return {kron_of(factors, left, right), rank};
}

Delta locon(const Factors& factors) {
  const torch::Tensor down = factors["lora_down"].flatten(1), up = factors["lora_up"].flatten(1);
  return {tucker(factors, factors["lora_mid"], up.t(), down), down.size(0)};
}

}  // namespace

const std::vector<std::string>& lycoris_names() {
  static const std::vector<std::string> names = {"hada_w1_a", "hada_w1_b", "hada_w2_a", "hada_w2_b", "hada_t1",
                                                 "hada_t2",   "lokr_w1",   "lokr_w1_a", "lokr_w1_b", "lokr_w2",
                                                 "lokr_w2_a", "lokr_w2_b", "lokr_t2",   "lora_mid"};
  return names;
}

torch::Tensor lycoris_delta(const LycorisFactors& tensors, std::optional<double> alpha,
                            const std::vector<std::int64_t>& shape, const std::string& where) {
  const Factors factors(tensors, shape, where);
  try {
    const Delta delta = factors.has("lora_mid")    ? locon(factors)
                        : factors.has("hada_w1_a") ? loha(factors)
                                                   : lokr(factors);
    const double scale = alpha && delta.rank > 0 ? *alpha / static_cast<double>(delta.rank) : 1.0;
    return delta.weight.reshape(shape) * scale;
  } catch (const c10::Error&) {  // a product or a view that cannot be
    throw WeightError(where, "has tensors that do not fit its layer", "it was trained on another model");
  }
}

}  // namespace sdtune::model
