#include "train/checkpoint/run_state.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kFormatVersion = 1;
constexpr const char* kWayOut = "restore it, or train into another --output";

Json to_object(const std::map<std::string, std::string>& entries) {
  Json object = Json::object();
  for (const auto& [name, text] : entries) object[name] = text;
  return object;
}

std::map<std::string, std::string> read_entries(JsonObject& parent, const std::string& key) {
  const Json& object = parent.raw(key);
  if (!object.is_object()) parent.fail(key, "must be an object of texts");
  std::map<std::string, std::string> entries;
  for (const auto& [name, text] : object.items()) {
    if (!text.is_string()) parent.fail(key, name + " is not a text");
    entries[name] = text.get<std::string>();
  }
  return entries;
}

Json to_object(const model::CpuImplementation& implementation) {
  Json object = Json::object();
  for (const model::CpuChoice& choice : model::kCpuChoices) object[choice.name] = choice.value_in(implementation);
  return object;
}

// A checkpoint of a version that recorded none: its choices are not known, but those that came later it was without.
model::CpuImplementation unrecorded_implementation() {
  model::CpuImplementation implementation = model::cpu_implementation();
  for (const model::CpuChoice& choice : model::kCpuChoices) {
    if (choice.came_later) implementation.*choice.is_first = false;
  }
  return implementation;
}

model::CpuImplementation read_implementation(JsonObject& parent, const std::string& key) {
  if (!parent.has(key)) return unrecorded_implementation();
  model::CpuImplementation implementation;
  const std::map<std::string, std::string> values = read_entries(parent, key);
  for (const model::CpuChoice& choice : model::kCpuChoices) {
    const auto found = values.find(choice.name);
    if (found == values.end() && choice.came_later) {
      implementation.*choice.is_first = false;
      continue;
    }
    if (found == values.end()) parent.fail(key, std::string("lacks ") + choice.name);
    if (!choice.set(implementation, found->second)) parent.fail(key, "has no such " + found->first);
  }
  return implementation;
}

std::string quoted(const std::string& text) {
  return text.empty() ? "nothing" : text;
}

void compare(const std::map<std::string, std::string>& saved, const std::map<std::string, std::string>& now,
             const std::string& kind, std::vector<Problem>& changes) {
  for (const auto& [name, text] : saved) {
    const auto found = now.find(name);
    if (found == now.end()) {
      changes.push_back({name, kind + " is gone; the checkpoint was trained with it", kWayOut});
    } else if (found->second != text) {
      const bool is_setting = kind == "option";
      const std::string values = " (got " + quoted(found->second) + "; the checkpoint has " + quoted(text) + ")";
      changes.push_back({name, kind + " changed since the checkpoint" + (is_setting ? values : ""), kWayOut});
    }
  }
  for (const auto& [name, text] : now) {
    if (!saved.contains(name)) changes.push_back({name, kind + " is new since the checkpoint", kWayOut});
  }
}

}  // namespace

Json RunState::to_json() const {
  Json json = Json::object();
  json["format_version"] = kFormatVersion;
  json["step"] = step;
  json["updates"] = updates;
  json["effective_batch"] = effective_batch;
  json["attempt"] = attempt;
  if (implementation) json["implementation"] = to_object(*implementation);
  json["loss_scale"] = scaler.scale;
  json["good_steps"] = scaler.good_steps;
  json["base_hash"] = fingerprint.base_hash;
  json["settings"] = to_object(fingerprint.settings);
  json["images"] = to_object(fingerprint.images);
  return json;
}

RunState RunState::from_json(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  object.require("format_version", kFormatVersion);
  RunState state;
  state.step = object.integer("step");
  state.updates = object.integer("updates");
  state.effective_batch = object.integer("effective_batch");
  state.attempt = object.integer("attempt");
  state.implementation = read_implementation(object, "implementation");
  state.scaler.scale = object.number("loss_scale", 1.0);
  state.scaler.good_steps = object.integer("good_steps");
  state.fingerprint.base_hash = object.string("base_hash", "");
  state.fingerprint.settings = read_entries(object, "settings");
  state.fingerprint.images = read_entries(object, "images");
  object.finish();
  return state;
}

std::vector<Problem> fingerprint_changes(const ResumeFingerprint& saved, const ResumeFingerprint& now) {
  std::vector<Problem> changes;
  if (saved.base_hash != now.base_hash) {
    changes.push_back({"base", "the model's files changed since the checkpoint", kWayOut});
  }
  compare(saved.settings, now.settings, "option", changes);
  compare(saved.images, now.images, "image or caption", changes);
  return changes;
}

}  // namespace sdtune::train
