#include "model/single_file/ldm_parts.h"

#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include <map>
#include <set>
#include <string_view>

namespace sdtune::model {
namespace {

// position_ids are 0 to 76, logit_scale belongs to CLIP's training. SD 2.x reads the states before the last layer, so
// diffusers' encoder ends there and the layer behind it and the projection are left over.
bool is_tolerated(const std::string& name, const LdmPart& part) {
  if (name.ends_with("position_ids") || name.ends_with("logit_scale")) return true;
  if (part.prefix == kVaePrefix) return name.starts_with("loss.");  // the discriminator that trained it
  const auto* encoder = dynamic_cast<const CLIPTextModelImpl*>(part.module.get());
  if (part.prefix == kSd1TextPrefix || part.prefix == kSdxlTextPrefix) {  // whose states are read before a projection
    return name == "text_projection.weight" && !encoder->config().with_projection;
  }
  if (part.prefix != kSd2TextPrefix) return false;
  const std::string behind = "transformer.resblocks." + std::to_string(encoder->config().num_hidden_layers) + ".";
  return name == "text_projection" || name.starts_with(behind);
}

// The three tensors of a stack are neighbours in no order of names: collects them by their place.
class Stacks {
 public:
  void add(const LdmName& name, const torch::Tensor& tensor) {
    std::vector<torch::Tensor>& parts = stacks_[name.name];
    parts.resize(3);
    parts[static_cast<std::size_t>(name.third)] = tensor;
  }
  void put_into(NamedTensors& tensors) const {
    for (const auto& [name, parts] : stacks_) tensors.emplace_back(name, at::cat(parts, 0));
  }

 private:
  std::map<std::string, std::vector<torch::Tensor>> stacks_;
};

}  // namespace

std::vector<LdmPart> ldm_parts(const ModelBundle& bundle, ModelFamily family) {
  const auto text_names = [](const CLIPTextModel& encoder, bool open_clip) {
    return open_clip ? open_clip_names(encoder->config()) : clip_names();
  };
  const bool sd2 = family == ModelFamily::kSd2;
  const char* text_prefix = sd2 ? kSd2TextPrefix : bundle.is_xl() ? kSdxlTextPrefix : kSd1TextPrefix;
  std::vector<LdmPart> parts;
  parts.push_back({"unet", kUNetPart, kUNetPrefix, ldm_unet_names(bundle.unet->config()), bundle.unet.ptr()});
  parts.push_back({"vae", kVaePart, kVaePrefix, ldm_vae_names(bundle.vae->config()), bundle.vae.ptr()});
  parts.push_back(
      {"text_encoder", kTextEncoderPart, text_prefix, text_names(bundle.text_encoder, sd2), bundle.text_encoder.ptr()});
  if (bundle.is_xl()) {
    parts.push_back({"text_encoder_2", kTextEncoderPart, kSdxlText2Prefix, text_names(bundle.text_encoder_2, true),
                     bundle.text_encoder_2.ptr()});
  }
  return parts;
}

PartTensors take_part(const LdmFile& file, const LdmPart& part, bool ema) {
  PartTensors taken;
  std::set<std::string> used;
  for (const auto& item : part.module->named_parameters()) {
    const LdmName name = part.names.ldm_name(item.key());
    const std::string stored = part.prefix + name.name;
    used.insert(stored);
    const std::string& source = ema && part.prefix == kUNetPrefix ? ema_name(stored) : stored;
    if (file.has(source)) taken.tensors.emplace_back(item.key(), from_stored(file.tensor(source), name));
  }
  for (const std::string& stored : file.names_under(part.prefix)) {
    if (used.contains(stored)) continue;
    if (is_tolerated(stored.substr(part.prefix.size()), part)) {
      taken.tolerated.push_back(stored);
    } else {
      taken.tensors.emplace_back(file.stored_name(stored), file.tensor(stored));
    }
  }
  return taken;
}

NamedTensors stored_tensors(const LdmPart& part) {
  const c10::AutoGradMode no_gradients(false);
  NamedTensors tensors;
  Stacks stacks;
  for (const auto& item : part.module->named_parameters()) {
    const LdmName name = part.names.ldm_name(item.key());
    if (name.form == StoredForm::kStacked) {
      stacks.add(name, item.value());
    } else {
      tensors.emplace_back(name.name, to_stored(item.value(), name.form));
    }
  }
  stacks.put_into(tensors);
  return tensors;
}

}  // namespace sdtune::model
