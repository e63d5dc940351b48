#include "train/identity/identity_prompts.h"

namespace sdtune::train {

const std::vector<IdentityPrompt>& identity_prompts() {
  static const std::vector<IdentityPrompt> prompts = {
      {"a photo of", " in front of a blue wall"}, {"a picture of", " at the beach"},
      {"a photo of", " wearing a red t-shirt"},   {"a portrait of", " in the woods"},
      {"a photo of", " wearing a blue jacket"},   {"a portrait of", " against a green background"},
      {"a photo of", " wearing a white cap"},     {"a pencil drawing of", ""}};
  return prompts;
}

}  // namespace sdtune::train
