// A scheduler_config.json against the keys that a scheduler class knows.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "model/schedule/noise_schedule.h"

namespace sdtune::model {

// A key, its default (whose JSON type is the type of the value; a list: of whole numbers; null: a number, a list of
// numbers or null), and what is allowed: one of `allowed`, or where that is empty anything within the bounds.
struct ConfigKey {
  std::string name;
  Json fallback;
  std::vector<Json> allowed = {};
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};
using ConfigKeys = std::vector<ConfigKey>;

// num_train_timesteps, beta_start, beta_end, beta_schedule, trained_betas, with the class's defaults.
ConfigKeys beta_keys(double start = 0.0001, double end = 0.02, const std::string& schedule = "linear");
// clip_sample with the class's default, clip_sample_range, and thresholding, which is refused.
ConfigKeys clipping_keys(bool clip_sample = true);
// The keys of all lists, one after the other.
ConfigKeys join_keys(std::vector<ConfigKeys> lists);

// Every key of `keys` with its given value or default, "_class_name", "_use_default_values" (the names of the keys that
// took their default) and the given keys that only other classes know, which have no effect. Throws WeightError naming
// `where`: a key that no scheduler of diffusers knows (with the nearest name), a wrong type, a value that is not
// allowed.
Json resolve_config(const std::string& class_name, const ConfigKeys& keys, const Json& given, const std::string& where);

// The keys of a config that were given, as diffusers' from_config reads another one's: without those that took the
// default of their class ("_use_default_values"), without that list.
Json given_keys(const Json& config);

// A flag of a resolved config, false where it is no key of the class but came along from another one's config.
bool own_flag(const Json& config, const ConfigKeys& keys, const std::string& name);
// The betas of a config resolved with `keys`.
BetaOptions beta_options(const Json& config, const ConfigKeys& keys);
// The largest |x0| that a resolved config allows; infinite without clip_sample.
double clip_range(const Json& config);

}  // namespace sdtune::model
