#include "model/lora/lycoris.h"

#include <c10/util/Exception.h>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

struct Delta {
  torch::Tensor weight;  // without alpha / rank; any shape with the right count
  std::int64_t rank;     // 0: alpha has no say
};

class Factors {
 public:
  Factors(const LycorisFactors& factors, const std::string& where) : factors_(factors), where_(where) {}

  bool has(const std::string& name) const { return factors_.contains(name); }
  torch::Tensor operator[](const std::string& name) const {
    const auto found = factors_.find(name);
    if (found == factors_.end()) throw WeightError(where_, "has no " + name, "the file is incomplete");
    return found->second.to(torch::kFloat32);
  }

 private:
  const LycorisFactors& factors_;
  const std::string& where_;
};

// a [r1, out], b [r2, in], core [r1, r2, k, k] -> [out, in, k, k].
torch::Tensor tucker(const torch::Tensor& core, const torch::Tensor& a, const torch::Tensor& b) {
  return torch::einsum("ijkl,ip,jr->prkl", {core, a, b}).contiguous();  // kron wants it so
}

Delta loha(const Factors& factors) {
  const auto half = [&](const std::string& number) {
    const torch::Tensor a = factors["hada_w" + number + "_a"], b = factors["hada_w" + number + "_b"];
    const std::string core = "hada_t" + number;
    return factors.has(core) ? tucker(factors[core], a, b) : torch::mm(a, b.flatten(1));
  };
  return {half("1") * half("2"), factors["hada_w1_b"].size(0)};
}

Delta lokr(const Factors& factors) {
  std::int64_t rank = 0;
  const auto factor = [&](const std::string& name, const std::string& core) {
    if (factors.has(name)) return factors[name];
    const torch::Tensor a = factors[name + "_a"], b = factors[name + "_b"];
    rank = b.size(0);
    return factors.has(core) ? tucker(factors[core], a, b) : torch::mm(a, b.flatten(1));
  };
  const torch::Tensor left = factor("lokr_w1", "lokr_t1"), right = factor("lokr_w2", "lokr_t2");
  if (right.dim() == 4) return {torch::kron(left.view({left.size(0), left.size(1), 1, 1}), right), rank};
  return {torch::kron(left, right), rank};
}

Delta locon(const Factors& factors) {
  const torch::Tensor down = factors["lora_down"].flatten(1), up = factors["lora_up"].flatten(1);
  return {tucker(factors["lora_mid"], up.t(), down), down.size(0)};
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
  const Factors factors(tensors, where);
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
