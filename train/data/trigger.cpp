#include "train/data/trigger.h"

#include <algorithm>
#include <vector>

namespace sdtune::train {
namespace {

// Bytes above 127 belong to letters of other alphabets, and stay as they are.
bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : text) {
    const bool part = is_word_byte(c) || (inside && (c == '-' || c == '_'));
    if (part && !inside) words.emplace_back();
    if (part) words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    inside = part;
  }
  return words;
}

}  // namespace

std::string trigger_of(std::string_view instance_prompt, std::string_view class_prompt) {
  const std::vector<std::string> instance = words_of(instance_prompt), others = words_of(class_prompt);
  const auto is_new = [&](const std::string& word) {
    return std::find(others.begin(), others.end(), word) == others.end();
  };
  const auto first = std::find_if(instance.begin(), instance.end(), is_new);
  if (first == instance.end()) return {};
  auto last = others.empty() ? instance.end() : std::find(first, instance.end(), others.back());
  if (last != instance.end()) ++last;
  std::string trigger;
  for (auto word = first; word != last; ++word) trigger.append(trigger.empty() ? "" : " ").append(*word);
  return trigger;
}

bool says_trigger(std::string_view prompt, std::string_view trigger) {
  const std::vector<std::string> words = words_of(prompt), sought = words_of(trigger);
  return std::search(words.begin(), words.end(), sought.begin(), sought.end()) != words.end() || sought.empty();
}

std::string with_trigger(std::string caption, std::string_view trigger) {
  for (std::size_t at = caption.find(kTriggerPlace); at != std::string::npos;
       at = caption.find(kTriggerPlace, at + trigger.size())) {
    caption.replace(at, kTriggerPlace.size(), trigger);
  }
  return caption;
}

std::string led_by_trigger(std::string caption, std::string_view trigger) {
  if (says_trigger(caption, trigger)) return caption;
  return caption.insert(0, std::string(trigger).append(", "));
}

}  // namespace sdtune::train
