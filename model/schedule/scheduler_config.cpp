#include "model/schedule/scheduler_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "model/base/error.h"
#include "model/base/nearest_name.h"

namespace sdtune::model {
namespace {

constexpr double kMaxTrainTimesteps = 100000;

// Every key that a scheduler class of diffusers for Stable Diffusion has: a config may have been another class's
// before.
constexpr std::array kDiffusersKeys = {"num_train_timesteps",
                                       "beta_start",
                                       "beta_end",
                                       "beta_schedule",
                                       "trained_betas",
                                       "prediction_type",
                                       "clip_sample",
                                       "clip_sample_range",
                                       "set_alpha_to_one",
                                       "set_alpha_to_zero",
                                       "steps_offset",
                                       "thresholding",
                                       "dynamic_thresholding_ratio",
                                       "sample_max_value",
                                       "timestep_spacing",
                                       "timestep_type",
                                       "rescale_betas_zero_snr",
                                       "variance_type",
                                       "skip_prk_steps",
                                       "interpolation_type",
                                       "use_karras_sigmas",
                                       "use_exponential_sigmas",
                                       "use_beta_sigmas",
                                       "use_lu_lambdas",
                                       "use_flow_sigmas",
                                       "flow_shift",
                                       "sigma_min",
                                       "sigma_max",
                                       "final_sigmas_type",
                                       "solver_order",
                                       "algorithm_type",
                                       "solver_type",
                                       "lower_order_final",
                                       "euler_at_final",
                                       "lambda_min_clipped",
                                       "use_dynamic_shifting",
                                       "time_shift_type",
                                       "predict_x0",
                                       "disable_corrector",
                                       "solver_p",
                                       "noise_sampler_seed",
                                       "original_inference_steps",
                                       "timestep_scaling",
                                       "shift_terminal",
                                       "sample_gamma"};

std::string list_text(const std::vector<Json>& values) {
  std::vector<std::string> texts;
  for (const Json& value : values) texts.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  return fmt::format("{}", fmt::join(texts, ", "));
}

[[noreturn]] void refuse(const std::string& where, const std::string& key, const Json& value,
                         const std::string& allowed) {
  const std::string got = value.is_string() ? value.get<std::string>() : value.dump();
  throw WeightError(where, key + " is not supported (got " + got + "; allowed: " + allowed + ")");
}

bool is_number_list(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& entry) { return entry.is_number(); });
}

bool is_whole_number_list(const Json& value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const Json& entry) { return entry.is_number_integer(); });
}

// What is allowed of the default's type, or "" where the value is of that type.
std::string type_fault(const Json& fallback, const Json& value) {
  if (fallback.is_boolean()) return value.is_boolean() ? "" : "true or false";
  if (fallback.is_number_integer()) return value.is_number_integer() ? "" : "a whole number";
  if (fallback.is_number()) return value.is_number() ? "" : "a number";
  if (fallback.is_string()) return value.is_string() ? "" : "text";
  if (fallback.is_array()) return is_whole_number_list(value) ? "" : "a list of whole numbers";
  return value.is_null() || value.is_number() || is_number_list(value) ? "" : "null, a number or a list of numbers";
}

void check_value(const ConfigKey& key, const Json& value, const std::string& where) {
  if (!key.allowed.empty()) {
    if (std::find(key.allowed.begin(), key.allowed.end(), value) == key.allowed.end()) {
      refuse(where, key.name, value, list_text(key.allowed));
    }
    return;
  }
  if (const std::string fault = type_fault(key.fallback, value); !fault.empty()) refuse(where, key.name, value, fault);
  if (!value.is_number()) return;
  const double number = value.get<double>();
  if (std::isnan(number) || number < key.min || number > key.max) {
    refuse(where, key.name, value, Json(key.min).dump() + " to " + Json(key.max).dump());
  }
}

// What diffusers before 0.9 wrote where prediction_type is epsilon; today's leaves it alone.
bool is_old_epsilon(const std::string& key, const Json& value) {
  return key == "predict_epsilon" && value == Json(true);
}

void check_known(const std::string& key, const std::string& where) {
  if (key.starts_with('_')) return;
  const std::vector<std::string> known(kDiffusersKeys.begin(), kDiffusersKeys.end());
  if (std::find(known.begin(), known.end(), key) != known.end()) return;
  const std::string nearest = nearest_name(key, known);
  throw WeightError(where, "unknown key '" + key + "'", nearest.empty() ? "" : "did you mean '" + nearest + "'?");
}

// A null stands for the default, and for minus infinity, which JSON cannot write.
bool is_given(const Json& given, const std::string& key) {
  if (!given.contains(key) || given[key].is_null()) return false;
  const Json defaults = given.value("_use_default_values", Json::array());
  return std::find(defaults.begin(), defaults.end(), Json(key)) == defaults.end();
}

}  // namespace

ConfigKeys beta_keys(double start, double end, const std::string& schedule) {
  return {{"num_train_timesteps", 1000, {}, 1, kMaxTrainTimesteps},
          {"beta_start", start, {}, 0, 1},
          {"beta_end", end, {}, 0, 1},
          {"beta_schedule", schedule, {"linear", "scaled_linear", "squaredcos_cap_v2"}},
          {"trained_betas", nullptr}};
}

ConfigKeys clipping_keys(bool clip_sample) {
  constexpr double kMaxRange = 1e6;
  return {{"clip_sample", clip_sample},
          {"clip_sample_range", 1.0, {}, 0, kMaxRange},
          {"thresholding", false, {false}},
          {"dynamic_thresholding_ratio", 0.995},
          {"sample_max_value", 1.0}};
}

ConfigKeys join_keys(std::vector<ConfigKeys> lists) {
  ConfigKeys out;
  for (ConfigKeys& list : lists) std::move(list.begin(), list.end(), std::back_inserter(out));
  return out;
}

Json resolve_config(const std::string& class_name, const ConfigKeys& keys, const Json& given,
                    const std::string& where) {
  if (!given.is_object()) throw WeightError(where, "is not an object of keys and values");
  Json out = {{"_class_name", class_name}};
  Json defaults = Json::array();
  for (const ConfigKey& key : keys) {
    if (is_given(given, key.name)) {
      check_value(key, given[key.name], where);
      out[key.name] = given[key.name];
    } else {
      out[key.name] = key.fallback;
      defaults.push_back(key.name);
    }
  }
  for (const auto& [key, value] : given.items()) {
    if (is_old_epsilon(key, value)) continue;
    check_known(key, where);
    if (!key.starts_with('_') && !out.contains(key) && is_given(given, key)) out[key] = value;
  }
  out["_use_default_values"] = defaults;
  return out;
}

Json given_keys(const Json& config) {
  Json given = config;
  if (!given.is_object()) return given;  // refused where it is resolved
  for (const Json& key : config.value("_use_default_values", Json::array())) {
    if (key.is_string()) given.erase(key.get<std::string>());
  }
  given.erase("_use_default_values");
  return given;
}

bool own_flag(const Json& config, const ConfigKeys& keys, const std::string& name) {
  const bool known = std::any_of(keys.begin(), keys.end(), [&](const ConfigKey& key) { return key.name == name; });
  return known && config[name].get<bool>();
}

BetaOptions beta_options(const Json& config, const ConfigKeys& keys) {
  BetaOptions options;
  options.num_train_timesteps = config["num_train_timesteps"].get<std::int64_t>();
  options.beta_start = config["beta_start"].get<double>();
  options.beta_end = config["beta_end"].get<double>();
  options.beta_schedule = config["beta_schedule"].get<std::string>();
  if (config["trained_betas"].is_array()) options.trained_betas = config["trained_betas"].get<std::vector<double>>();
  options.rescale_betas_zero_snr = own_flag(config, keys, "rescale_betas_zero_snr");
  return options;
}

double clip_range(const Json& config) {
  if (!config["clip_sample"].get<bool>()) return std::numeric_limits<double>::infinity();
  return config["clip_sample_range"].get<double>();
}

}  // namespace sdtune::model
