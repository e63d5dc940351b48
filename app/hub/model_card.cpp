#include "app/hub/model_card.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "model/base/error.h"
#include "model/files/base_name.h"
#include "model/files/file_system.h"
#include "model/files/hub_cache.h"
#include "model/files/model_note.h"
#include "model/lora/lora_file.h"
#include "model/options/settings.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

// Options that say how it was trained; paths and captions are none of them.
constexpr std::array kShown = {"method",
                               "instance_prompt",
                               "class_prompt",
                               "with_prior_preservation",
                               "prior_loss_weight",
                               "num_class_images",
                               "resolution",
                               "max_train_steps",
                               "train_batch_size",
                               "gradient_accumulation_steps",
                               "train_text_encoder",
                               "learning_rate",
                               "text_encoder_lr",
                               "lr_scheduler",
                               "lr_warmup_steps",
                               "optimizer",
                               "rank",
                               "lora_alpha",
                               "mixed_precision",
                               "snr_gamma",
                               "dco_beta",
                               "noise_offset",
                               "use_ema",
                               "seed"};

using Options = std::map<std::string, std::string>;

Options read_options(const fs::path& run) {
  Options options;
  if (!is_file(run / "config.yaml")) return options;
  std::vector<Problem> problems;
  for (const Setting& setting : settings_from_yaml(run / "config.yaml", problems)) {
    if (!setting.is_null && !setting.is_list && !setting.items.empty()) options[setting.name] = setting.items.front();
  }
  if (!problems.empty()) throw ConfigError(problems);
  return options;
}

// At most 300 bytes and no part of a UTF-8 letter.
std::string shortened(const std::string& text) {
  std::size_t end = 300;
  if (text.size() <= end) return text;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return text.substr(0, end) + "...";
}

// A cell of a table: no line breaks, no borders, no markup.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char letter : shortened(text)) {
    if (letter == '|' || letter == '`' || letter == '<' || letter == '\\') safe += '\\';
    safe += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
  return safe;
}

// A text between double quotes, in which a backslash stands before each of `special`: a line of code that runs as it
// is.
std::string quoted(const std::string& text, std::string_view special) {
  std::string code = "\"";
  for (const char letter : text) {
    if (special.find(letter) != std::string_view::npos) code += '\\';
    code += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
  return code + '"';
}

constexpr std::string_view kOfPython = "\\\"";
constexpr std::string_view kOfShell = "\\\"$`";

std::string front_matter(const std::string& base, bool is_lora, bool is_xl, const std::string& prompt) {
  std::string text = "---\nlibrary_name: diffusers\npipeline_tag: text-to-image\n";
  if (is_hub_id(base)) text += "base_model: " + base + "\n";
  if (is_hub_id(base)) text += std::string("base_model_relation: ") + (is_lora ? "adapter" : "finetune") + "\n";
  if (!prompt.empty()) text += "instance_prompt: " + yaml_quoted(prompt) + "\n";
  text += std::string("tags:\n- text-to-image\n- diffusers\n- dreambooth\n- sdtune\n") +
          (is_xl ? "- stable-diffusion-xl\n" : "- stable-diffusion\n");
  return text + (is_lora ? "- lora\n" : "") + "---\n\n";
}

std::string usage(const std::string& id, const std::string& base, bool is_lora, const std::string& prompt) {
  const std::string asked = prompt.empty() ? "a photo" : prompt;
  if (!is_lora) {
    return fmt::format(
        "```python\nfrom diffusers import DiffusionPipeline\n\npipe = DiffusionPipeline.from_pretrained(\"{0}\")\n"
        "image = pipe({1}).images[0]\n```\n\n```\nsdtune fetch {0}\nsdtune sample --model {0} --prompt {2}\n```\n",
        id, quoted(asked, kOfPython), quoted(asked, kOfShell));
  }
  return fmt::format(
      "```python\nfrom diffusers import DiffusionPipeline\n\npipe = DiffusionPipeline.from_pretrained(\"{2}\")\n"
      "pipe.load_lora_weights(\"{0}\")\nimage = pipe({1}).images[0]\n```\n",
      id, quoted(asked, kOfPython), base.empty() ? "BASE" : base);
}

constexpr const char* kConsent =
    "\n## Consent\n"
    "A model that was tuned on photos of a person can generate images of that person. Whoever uploads it needs the "
    "consent of everyone on the photos, for this model and for this place; whoever uses it needs theirs for the "
    "images. "
    "Delete the model when a consent is taken back. The licence of the base goes on to hold.\n";

}  // namespace

std::string model_card(const ModelCardRequest& request) {
  const bool is_lora = is_file(request.model / model::kLoraFile) && !is_file(request.model / "model_index.json");
  const ModelNote note = read_model_note(request.model);
  const Options options = read_options(request.run);
  const auto option = [&](const std::string& name) {
    const auto found = options.find(name);
    return found == options.end() ? std::string() : found->second;
  };
  const std::string base = public_base_name(option("base").empty() ? note.base : option("base"));
  const std::string prompt = option("instance_prompt").empty() ? note.trigger : option("instance_prompt");
  const bool is_xl = fs::exists(request.model / "text_encoder_2") || base.find("xl") != std::string::npos;
  std::string text = front_matter(base, is_lora, is_xl, prompt);
  text += "# " + request.id.substr(request.id.find('/') + 1) + "\n\n";
  text += std::string("A ") + (is_lora ? "LoRA" : "model") + " tuned with sdtune" +
          (base.empty() ? "" : " from `" + base + "`") + ".";
  if (!note.trigger.empty()) text += " The words that call its subject: `" + cell(note.trigger) + "`.";
  if (note.rendered_people) text += " It learnt from rendered people alone.";
  text += "\n\n";
  if (!request.sheet.empty()) text += "![Generated images](" + request.sheet + ")\n\n";
  text += "## Use\n" + usage(request.id, base, is_lora, prompt) + "\n## Training\n";
  if (options.empty()) text += "No record of the run was uploaded.\n";
  if (!options.empty()) text += "| option | value |\n|---|---|\n";
  for (const char* name : kShown) {
    if (!option(name).empty()) text += fmt::format("| {} | {} |\n", name, cell(option(name)));
  }
  return text + kConsent;
}

}  // namespace sdtune::app
