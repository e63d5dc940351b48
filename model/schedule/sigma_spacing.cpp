#include "model/schedule/sigma_spacing.h"

#include <algorithm>
#include <cmath>

#include "model/base/error.h"
#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {
namespace {

constexpr double kKarrasRho = 7.0;
constexpr double kSmallestSigma = 1e-10;

std::vector<double> to_vector(const torch::Tensor& tensor) {
  const torch::Tensor values = tensor.to(torch::kFloat64).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

// The end of a curve, which is straight in a root or in the logarithm.
double sigma_or(const Json& config, const char* key, double fallback) {
  if (!config.contains(key) || !config[key].is_number()) return fallback;
  const auto sigma = config[key].get<double>();
  if (sigma > 0) return sigma;
  throw ConfigError(key, "is no noise level of a curve (got " + config[key].dump() + "; allowed: x > 0)");
}

}  // namespace

SigmaTable::SigmaTable(const torch::Tensor& alphas_cumprod) {
  const torch::Tensor sigmas = ((1 - alphas_cumprod) / alphas_cumprod).sqrt();
  sigmas_ = to_vector(sigmas);
  log_sigmas_ = to_vector(sigmas.log());
}

std::vector<double> SigmaTable::interpolate(const std::vector<double>& timesteps) const {
  const auto last = static_cast<double>(sigmas_.size() - 1);
  std::vector<double> out;
  for (const double t : timesteps) {
    if (t >= last || t <= 0) {
      out.push_back(t <= 0 ? sigmas_.front() : sigmas_.back());
      continue;
    }
    const auto low = static_cast<std::size_t>(t);
    out.push_back((sigmas_[low + 1] - sigmas_[low]) * (t - static_cast<double>(low)) + sigmas_[low]);
  }
  return out;
}

double SigmaTable::timestep_of(double sigma) const {
  if (log_sigmas_.size() < 2) return 0;  // nothing to interpolate between
  const double value = std::log(std::max(sigma, kSmallestSigma));
  const auto above = std::upper_bound(log_sigmas_.begin(), log_sigmas_.end(), value);
  const std::ptrdiff_t found = std::max<std::ptrdiff_t>(0, above - log_sigmas_.begin() - 1);
  const auto low = static_cast<std::size_t>(std::min<std::ptrdiff_t>(found, std::ssize(log_sigmas_) - 2));
  const double width = static_cast<float>(log_sigmas_[low]) - static_cast<float>(log_sigmas_[low + 1]);
  const double weight = std::clamp((log_sigmas_[low] - value) / width, 0.0, 1.0);
  return (1 - weight) * static_cast<double>(low) + weight * static_cast<double>(low + 1);
}

std::vector<double> SigmaTable::timesteps_of(const std::vector<double>& sigmas) const {
  std::vector<double> out;
  for (const double sigma : sigmas) out.push_back(timestep_of(sigma));
  return out;
}

ConfigKeys sigma_curve_keys() {
  return {{"use_karras_sigmas", false}, {"use_exponential_sigmas", false}, {"use_beta_sigmas", false, {false}}};
}

SigmaCurve sigma_curve(const Json& config, const ConfigKeys& keys, const std::string& where) {
  const bool karras = own_flag(config, keys, "use_karras_sigmas");
  const bool exponential = own_flag(config, keys, "use_exponential_sigmas");
  const bool lu = own_flag(config, keys, "use_lu_lambdas");
  if (karras && exponential) {
    throw WeightError(where, "use_karras_sigmas and use_exponential_sigmas are both set (allowed: one of them)");
  }
  if (karras) return SigmaCurve::kKarras;
  if (lu) return SigmaCurve::kLu;
  return exponential ? SigmaCurve::kExponential : SigmaCurve::kNone;
}

std::string curve_fault(SigmaCurve curve) {
  if (curve == SigmaCurve::kNone) return "";
  const std::string key = curve == SigmaCurve::kKarras        ? "use_karras_sigmas"
                          : curve == SigmaCurve::kExponential ? "use_exponential_sigmas"
                                                              : "use_lu_lambdas";
  return "do not go with " + key + " (got true; allowed: false)";
}

std::vector<double> curve_sigmas(SigmaCurve curve, double min, double max, std::int64_t count, const Json& config) {
  if (curve != SigmaCurve::kLu) {
    min = sigma_or(config, "sigma_min", min);
    max = sigma_or(config, "sigma_max", max);
  }
  std::vector<double> out;
  if (curve == SigmaCurve::kKarras) {
    const double from = std::pow(max, 1 / kKarrasRho);
    const double to = std::pow(min, 1 / kKarrasRho);
    for (const double ramp : linear_ramp(0, 1, count)) out.push_back(std::pow(from + ramp * (to - from), kKarrasRho));
    return out;
  }
  // Both remaining curves are straight in log sigma; Lu's lambda is -log sigma.
  const double from = std::log(max);
  const double to = std::log(min);
  for (const double ramp : linear_ramp(0, 1, count)) out.push_back(std::exp(from + ramp * (to - from)));
  return out;
}

torch::Tensor finite_alphas_cumprod(const NoiseSchedule& schedule, bool rescaled_to_zero_snr) {
  torch::Tensor alphas_cumprod = schedule.alphas_cumprod.clone();
  if (rescaled_to_zero_snr) alphas_cumprod[-1] = std::ldexp(1.0, -24);
  return alphas_cumprod;
}

double final_sigma(const Json& config, const SigmaTable& table) {
  return config["final_sigmas_type"] == "sigma_min" ? table.first() : 0.0;
}

void require_distinct_sigmas(const std::string& class_name, const std::vector<double>& sigmas) {
  const auto are_equal = [](double left, double right) {
    return static_cast<float>(left) == static_cast<float>(right);
  };
  if (std::adjacent_find(sigmas.begin(), sigmas.end(), are_equal) == sigmas.end()) return;
  throw ConfigError("num_inference_steps",
                    "leads to two steps at one noise level, between which " + class_name + " divides by 0 (got " +
                        std::to_string(sigmas.size()) + "; allowed: fewer)",
                    "timestep_spacing trailing visits no noise level twice");
}

std::int64_t index_of_timestep(const torch::Tensor& timesteps, double t) {
  const torch::Tensor values = timesteps.to(torch::kFloat64).contiguous();
  const double* first = values.data_ptr<double>();
  const double* last = first + values.numel();
  if (t == *first) return 0;
  const double* found = std::find(first, last, t);
  TORCH_CHECK(found != last, "t = ", t, " is not one of the scheduler's timesteps");
  const double* second = std::find(found + 1, last, t);
  return (second == last ? found : second) - first;
}

}  // namespace sdtune::model
