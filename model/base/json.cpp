#include "model/base/json.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "model/base/error.h"
#include "model/base/nearest_name.h"

namespace sdtune {
namespace {

constexpr int kMaxDepth = 64;

// Walks the events of a document and refuses what nlohmann would let pass: a key given twice, absurd depth.
class Guard : public nlohmann::json_sax<Json> {
 public:
  explicit Guard(std::string where) : where_(std::move(where)) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) throw WeightError(where_, "the key '" + key + "' is given twice");
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& problem) override {
    throw WeightError(where_, "not JSON at byte " + std::to_string(position) + ": " + problem.what());
  }

 private:
  bool enter() {
    if (keys_.size() > kMaxDepth)
      throw WeightError(where_, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    keys_.emplace_back();
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  std::string where_;
  std::vector<std::set<std::string>> keys_;
};

std::string dump(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 80 ? text.substr(0, 80) + "..." : text;
}

// Python writes infinities, which JSON does not have, as bare words (diffusers: "lambda_min_clipped": -Infinity). They
// become null, "not given", padded so that byte positions in errors stay. NaN stays an error.
std::string with_nulls_for_infinity(std::string_view text) {
  std::string out(text);
  bool in_string = false;
  for (std::size_t at = 0; at < out.size(); ++at) {
    if (in_string && out[at] == '\\') {
      ++at;
    } else if (out[at] == '"') {
      in_string = !in_string;
    } else if (!in_string && (out[at] == '-' || out[at] == 'I')) {
      for (const std::string_view word : {"-Infinity", "Infinity"}) {
        if (out.compare(at, word.size(), word) != 0) continue;
        out.replace(at, word.size(), std::string("null").append(word.size() - 4, ' '));
        break;
      }
    }
  }
  return out;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  const std::string standard = with_nulls_for_infinity(text);
  Guard guard(where);
  Json::sax_parse(standard, &guard);
  return Json::parse(standard);
}

std::string valid_text(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

JsonObject::JsonObject(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) throw WeightError(where_, "must be a JSON object (got " + dump(object) + ")");
}

void JsonObject::fail(const std::string& key, const std::string& what) const {
  throw WeightError(where_ + ": " + key, what);
}

bool JsonObject::has(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

const Json& JsonObject::raw(const std::string& key) {
  static const Json kNull;
  read_.push_back(key);
  const auto found = object_.find(key);
  return found == object_.end() ? kNull : *found;
}

std::int64_t JsonObject::integer(const std::string& key) {
  const Json& value = raw(key);
  if (value.is_null()) fail(key, "is missing (an integer is needed)");
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    fail(key, "is too large (got " + dump(value) + ")");
  }
  if (!value.is_number_integer()) fail(key, "must be an integer (got " + dump(value) + ")");
  return value.get<std::int64_t>();
}

std::int64_t JsonObject::integer(const std::string& key, std::int64_t fallback) {
  if (has(key)) return integer(key);
  ignore(key);
  return fallback;
}

double JsonObject::number(const std::string& key, double fallback) {
  const Json& value = raw(key);
  if (value.is_null()) return fallback;
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    fail(key, "must be a finite number (got " + dump(value) + ")");
  }
  return value.get<double>();
}

bool JsonObject::boolean(const std::string& key, bool fallback) {
  const Json& value = raw(key);
  if (value.is_null()) return fallback;
  if (!value.is_boolean()) fail(key, "must be true or false (got " + dump(value) + ")");
  return value.get<bool>();
}

std::string JsonObject::string(const std::string& key, const std::string& fallback) {
  const Json& value = raw(key);
  if (value.is_null()) return fallback;
  if (!value.is_string()) fail(key, "must be a string (got " + dump(value) + ")");
  return value.get<std::string>();
}

std::vector<std::int64_t> JsonObject::integers(const std::string& key) {
  const Json& value = raw(key);
  if (value.is_null()) return {};
  if (!value.is_array()) return {integer(key)};
  std::vector<std::int64_t> list;
  for (const Json& item : value) {
    const bool too_large =
        item.is_number_unsigned() && item.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    if (!item.is_number_integer() || too_large) fail(key, "must be a list of integers (got " + dump(value) + ")");
    list.push_back(item.get<std::int64_t>());
  }
  return list;
}

std::vector<bool> JsonObject::booleans(const std::string& key) {
  const Json& value = raw(key);
  if (value.is_null()) return {};
  if (value.is_boolean()) return {value.get<bool>()};
  std::vector<bool> list;
  const bool is_list = value.is_array();
  for (const Json& item : is_list ? value : Json::array({value})) {
    if (!item.is_boolean()) fail(key, "must be true, false or a list of them (got " + dump(value) + ")");
    list.push_back(item.get<bool>());
  }
  return list;
}

std::vector<std::string> JsonObject::strings(const std::string& key) {
  const Json& value = raw(key);
  if (value.is_null()) return {};
  if (!value.is_array()) fail(key, "must be a list of strings (got " + dump(value) + ")");
  std::vector<std::string> list;
  for (const Json& item : value) {
    if (!item.is_string()) fail(key, "must be a list of strings (got " + dump(value) + ")");
    list.push_back(item.get<std::string>());
  }
  return list;
}

void JsonObject::ignore(const std::string& key) {
  read_.push_back(key);
}

void JsonObject::require(const std::string& key, const Json& only_value) {
  const Json& value = raw(key);
  if (!value.is_null() && value != only_value) {
    fail(key, "is not supported (got " + dump(value) + "; allowed: " + dump(only_value) + ")");
  }
}

void JsonObject::check_range(const std::string& key, std::int64_t value, std::int64_t min, std::int64_t max) const {
  if (value >= min && value <= max) return;
  fail(key, (value < min ? "is too small (got " : "is too large (got ") + std::to_string(value) +
                "; allowed: " + std::to_string(min) + " to " + std::to_string(max) + ")");
}

void JsonObject::finish() const {
  std::vector<Problem> problems;
  for (const auto& [key, value] : object_.items()) {
    if (key.starts_with("_") || std::find(read_.begin(), read_.end(), key) != read_.end()) continue;
    const std::string near = nearest_name(key, read_);
    problems.push_back({where_ + ": " + key, "is not a key that sdtune supports (got " + dump(value) + ")",
                        near.empty() ? "" : "did you mean '" + near + "'?"});
  }
  if (!problems.empty()) throw WeightError(std::move(problems));
}

}  // namespace sdtune
