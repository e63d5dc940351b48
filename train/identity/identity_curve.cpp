#include "train/identity/identity_curve.h"

#include <algorithm>
#include <limits>

namespace sdtune::train {

namespace {

bool is_number(const Json& line, const char* key) {
  const auto value = line.find(key);
  return value != line.end() && value->is_number();
}

std::optional<IdentityResult> result_of(const Json& line) {
  for (const char* key : {"step", "identity", "accepted", "prompt_fidelity", "leak"}) {
    if (!is_number(line, key)) return std::nullopt;
  }
  return IdentityResult{line["step"], {line["identity"], line["accepted"], line["prompt_fidelity"], line["leak"]}};
}

}  // namespace

void IdentityCurve::read(std::string_view lines) {
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    if (end == std::string_view::npos) return;
    const Json line = Json::parse(lines.substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (!line.is_object() || !line.contains("exam") || line["exam"] != digest_) continue;
    if (const std::optional<IdentityResult> result = result_of(line)) add(*result);
  }
}

Json IdentityCurve::line_of(const IdentityResult& result) const {
  return {{"exam", digest_},
          {"step", result.step},
          {"identity", result.scores.identity},
          {"accepted", result.scores.accepted},
          {"prompt_fidelity", result.scores.prompt_fidelity},
          {"leak", result.scores.leak},
          {"score", result.scores.total()}};
}

void IdentityCurve::add(const IdentityResult& result) {
  if (has(result.step)) return;
  results_.push_back(result);
  std::sort(results_.begin(), results_.end(),
            [](const IdentityResult& left, const IdentityResult& right) { return left.step < right.step; });
}

bool IdentityCurve::has(std::int64_t step) const {
  return std::any_of(results_.begin(), results_.end(),
                     [&](const IdentityResult& result) { return result.step == step; });
}

const IdentityResult& IdentityCurve::at(std::int64_t step) const {
  return *std::find_if(results_.begin(), results_.end(),
                       [&](const IdentityResult& result) { return result.step == step; });
}

const IdentityResult* IdentityCurve::best_until(std::int64_t done) const {
  const IdentityResult* best = nullptr;
  for (const IdentityResult& result : results_) {
    if (result.step == 0 || result.step > done) continue;
    if (best == nullptr || result.scores.total() > best->scores.total()) best = &result;
  }
  return best;
}

std::optional<std::int64_t> IdentityCurve::best(std::int64_t done) const {
  const IdentityResult* result = best_until(done);
  return result != nullptr ? std::optional(result->step) : std::nullopt;
}

bool IdentityCurve::is_better(const IdentityResult& result) const {
  if (result.step == 0) return false;
  const IdentityResult* best = best_until(std::numeric_limits<std::int64_t>::max());
  return best == nullptr || result.scores.total() > best->scores.total();
}

bool IdentityCurve::is_on_plateau(std::int64_t done, std::int64_t patience) const {
  const IdentityResult* best = best_until(done);
  if (best == nullptr) return false;
  const auto later = std::count_if(results_.begin(), results_.end(), [&](const IdentityResult& result) {
    return result.step > best->step && result.step <= done;
  });
  return later >= patience;
}

}  // namespace sdtune::train
