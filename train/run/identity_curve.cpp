#include "train/run/identity_curve.h"

#include <algorithm>
#include <limits>

namespace sdtune::train {

namespace {

bool is_number(const Json& line, const char* key) {
  const auto value = line.find(key);
  return value != line.end() && value->is_number();
}

std::optional<IdentityLook> look_of(const Json& line) {
  for (const char* key : {"step", "identity", "accepted", "prompt_fidelity", "leak"}) {
    if (!is_number(line, key)) return std::nullopt;
  }
  return IdentityLook{line["step"], {line["identity"], line["accepted"], line["prompt_fidelity"], line["leak"]}};
}

}  // namespace

void IdentityCurve::read(std::string_view lines) {
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    if (end == std::string_view::npos) return;
    const Json line = Json::parse(lines.substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (!line.is_object() || !line.contains("exam") || line["exam"] != exam_) continue;
    if (const std::optional<IdentityLook> look = look_of(line)) add(*look);
  }
}

Json IdentityCurve::line_of(const IdentityLook& look) const {
  return {{"exam", exam_},
          {"step", look.step},
          {"identity", look.scores.identity},
          {"accepted", look.scores.accepted},
          {"prompt_fidelity", look.scores.prompt_fidelity},
          {"leak", look.scores.leak},
          {"score", look.scores.total()}};
}

void IdentityCurve::add(const IdentityLook& look) {
  if (has(look.step)) return;
  looks_.push_back(look);
  std::sort(looks_.begin(), looks_.end(),
            [](const IdentityLook& left, const IdentityLook& right) { return left.step < right.step; });
}

bool IdentityCurve::has(std::int64_t step) const {
  return std::any_of(looks_.begin(), looks_.end(), [&](const IdentityLook& look) { return look.step == step; });
}

const IdentityLook* IdentityCurve::best_until(std::int64_t done) const {
  const IdentityLook* best = nullptr;
  for (const IdentityLook& look : looks_) {
    if (look.step == 0 || look.step > done) continue;
    if (best == nullptr || look.scores.total() > best->scores.total()) best = &look;
  }
  return best;
}

std::optional<std::int64_t> IdentityCurve::best() const {
  const IdentityLook* look = best_until(std::numeric_limits<std::int64_t>::max());
  return look != nullptr ? std::optional(look->step) : std::nullopt;
}

bool IdentityCurve::is_better(const IdentityLook& look) const {
  if (look.step == 0) return false;
  const IdentityLook* best = best_until(std::numeric_limits<std::int64_t>::max());
  return best == nullptr || look.scores.total() > best->scores.total();
}

bool IdentityCurve::is_on_plateau(std::int64_t done, std::int64_t patience) const {
  const IdentityLook* best = best_until(done);
  if (best == nullptr) return false;
  const auto later = std::count_if(looks_.begin(), looks_.end(), [&](const IdentityLook& look) {
    return look.step > best->step && look.step <= done;
  });
  return later >= patience;
}

}  // namespace sdtune::train
