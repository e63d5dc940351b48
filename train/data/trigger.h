// The words that call a trained subject in a prompt: "sks person" of "a photo of sks person".
#pragma once

#include <string>
#include <string_view>

namespace sdtune::train {

// What the instance prompt says of the subject: from its first word that the class prompt lacks to its next word that
// ends the class prompt, or to its end where there is none. "a photo of sks person at home" with the class "a photo of
// a person": "sks person". Empty when the class prompt has all its words. Letters' case and punctuation do not count.
std::string trigger_of(std::string_view instance_prompt, std::string_view class_prompt);

// Whether a prompt has the trigger's words, one after the other. Letters' case and punctuation do not count. True for
// an empty trigger.
bool says_trigger(std::string_view prompt, std::string_view trigger);

inline constexpr std::string_view kTriggerPlace = "[trigger]";

// A caption with the trigger in place of each "[trigger]".
std::string with_trigger(std::string caption, std::string_view trigger);

// "trigger, caption" for a caption that does not say it; the caption as it is otherwise, and for an empty trigger.
std::string led_by_trigger(std::string caption, std::string_view trigger);

}  // namespace sdtune::train
