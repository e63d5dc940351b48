#include "train/prove/part_result.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "model/base/error.h"

namespace sdtune::train {

namespace {

constexpr std::array<const char*, 4> kStatusNames = {"passed", "failed", "skipped", "unfinished"};

// JSON has no infinity: a number that is not finite is null there.
Json number_json(double number) {
  return std::isfinite(number) ? Json(number) : Json();
}

std::optional<double> bar_of(const Json& check, const char* key) {
  return check.contains(key) ? std::optional(check.at(key).get<double>()) : std::nullopt;
}

}  // namespace

bool Check::passed() const {
  const bool is_enough = !at_least || value >= *at_least;
  const bool is_small = !at_most || value <= *at_most;
  return is_enough && is_small;
}

void PartResult::judge() {
  for (const Check& check : checks) {
    if (check.passed()) continue;
    status = PartStatus::kFailed;
    if (reason.find("outside its bar") == std::string::npos) {
      reason = check.name + " is outside its bar" + (reason.empty() ? "" : "; " + reason);
    }
  }
}

std::string status_name(PartStatus status) {
  return kStatusNames.at(static_cast<std::size_t>(status));
}

PartResult failed_part(std::string name, std::string reason) {
  PartResult result;
  result.name = std::move(name);
  result.status = PartStatus::kFailed;
  result.reason = std::move(reason);
  return result;
}

PartResult skipped_part(std::string name, std::string reason) {
  PartResult result = failed_part(std::move(name), std::move(reason));
  result.status = PartStatus::kSkipped;
  return result;
}

Json checks_json(const std::vector<Check>& checks) {
  Json list = Json::array();
  for (const Check& check : checks) {
    Json json = {{"name", check.name}, {"value", number_json(check.value)}};
    if (check.at_least) json["at_least"] = *check.at_least;
    if (check.at_most) json["at_most"] = *check.at_most;
    if (check.has_bar()) json["passed"] = check.passed();
    if (!check.source.empty()) json["source"] = check.source;
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<Check> checks_from_json(const Json& json, const std::string& where) {
  std::vector<Check> checks;
  try {
    for (const Json& item : json) {
      Check check;
      check.name = item.at("name").get<std::string>();
      check.value = item.at("value").is_null() ? std::numeric_limits<double>::quiet_NaN() : item["value"].get<double>();
      check.at_least = bar_of(item, "at_least");
      check.at_most = bar_of(item, "at_most");
      check.source = item.value("source", "");
      checks.push_back(std::move(check));
    }
  } catch (const Json::exception& error) {
    throw WeightError(where, std::string("is no list of checks (") + error.what() + ")");
  }
  return checks;
}

Json part_json(const PartResult& result) {
  return {{"name", result.name},       {"status", status_name(result.status)},
          {"reason", result.reason},   {"checks", checks_json(result.checks)},
          {"numbers", result.numbers}, {"images", result.images},
          {"seconds", result.seconds}, {"peak_bytes", result.peak_bytes}};
}

PartResult part_from_json(const Json& json, const std::string& where) {
  PartResult result;
  try {
    result.name = json.at("name").get<std::string>();
    const auto status = json.at("status").get<std::string>();
    std::size_t index = 0;
    while (index < kStatusNames.size() && status != kStatusNames.at(index)) ++index;
    if (index == kStatusNames.size()) throw WeightError(where, "has an unknown status (got " + status + ")");
    result.status = static_cast<PartStatus>(index);
    result.reason = json.at("reason").get<std::string>();
    result.numbers = json.at("numbers");
    result.images = json.at("images").get<std::vector<std::string>>();
    result.seconds = json.at("seconds").get<double>();
    result.peak_bytes = json.at("peak_bytes").get<std::int64_t>();
  } catch (const Json::exception& error) {
    throw WeightError(where, std::string("is no result of a part (") + error.what() + ")");
  }
  result.checks = checks_from_json(json.at("checks"), where);
  return result;
}

}  // namespace sdtune::train
