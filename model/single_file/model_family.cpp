#include "model/single_file/model_family.h"

#include <array>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

// Models of the same layout whose UNet takes more than latents.
struct OtherInput {
  std::int64_t channels;
  const char* what;
};
constexpr std::array<OtherInput, 4> kOtherInputs = {{{9, "an inpainting model"},
                                                     {8, "an editing model (InstructPix2Pix)"},
                                                     {7, "an upscaler"},
                                                     {5, "a depth-to-image model"}}};

void check_input(const LdmFile& file) {
  const std::string name = std::string(kUNetPrefix) + "input_blocks.0.0.weight";
  if (!file.has(name)) {
    throw WeightError(file.where(), "is not a Stable Diffusion model in one file: it has no " + name,
                      "SD 1.x, SD 2.x and SDXL are read; sdtune inspect FILE says what it is");
  }
  const torch::Tensor weight = file.tensor(name);
  if (weight.dim() != 4) throw WeightError(file.where() + ": " + name, "is not a convolution's weight");
  for (const OtherInput& other : kOtherInputs) {
    if (weight.size(1) != other.channels) continue;
    throw WeightError(file.where(),
                      std::string("is ") + other.what + ", which is not supported: its UNet takes " +
                          std::to_string(other.channels) + " channels (allowed: 4)",
                      "take the plain model that it was made from");
  }
}

}  // namespace

const char* family_name(ModelFamily family) {
  switch (family) {
    case ModelFamily::kSd1:
      return "SD 1.x";
    case ModelFamily::kSd2:
      return "SD 2.x";
    case ModelFamily::kSdxl:
      return "SDXL";
  }
  return "";
}

ModelFamily detect_family(const LdmFile& file) {
  check_input(file);
  if (!file.has_under(kVaePrefix)) {
    throw WeightError(file.where(), std::string("holds no VAE: no tensor begins with ") + kVaePrefix,
                      "take the file with a baked-in VAE");
  }
  if (file.has_under(kSdxlText2Prefix)) return ModelFamily::kSdxl;
  if (file.has_under("conditioner.embedders.0.model.")) {
    throw WeightError(file.where(), "is SDXL's refiner, which is not supported", "take the SDXL base model");
  }
  if (file.has_under(kSd2TextPrefix)) return ModelFamily::kSd2;
  if (file.has_under(kSd1TextPrefix)) return ModelFamily::kSd1;
  throw WeightError(file.where(), "holds no text encoder (looked for " + std::string(kSd1TextPrefix) + ", " +
                                      kSd2TextPrefix + ", " + kSdxlText2Prefix + ")");
}

ModelFamily family_of(const BundleConfigs& configs, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    throw WeightError(where, "has no place in an LDM single file: " + what);
  };
  if (configs.unet.mid_block_type != "UNetMidBlock2DCrossAttn") refuse("its UNet's middle block has no attention");
  if (!configs.vae.mid_block_add_attention) refuse("its VAE's middle block has no attention");
  if (!configs.vae.use_quant_conv || !configs.vae.use_post_quant_conv) refuse("its VAE lacks the quant convolutions");
  const bool open_clip = configs.text_encoder.hidden_act == Activation::kGelu;
  if (!configs.index.is_xl()) {
    if (configs.text_encoder.with_projection) refuse("its text encoder has a projection");
    return open_clip ? ModelFamily::kSd2 : ModelFamily::kSd1;
  }
  if (open_clip) refuse("its first text encoder is not OpenAI's CLIP (hidden_act quick_gelu)");
  if (configs.text_encoder.with_projection) refuse("its first text encoder has a projection");
  if (configs.text_encoder_2->hidden_act != Activation::kGelu) refuse("its text_encoder_2 is not OpenCLIP's (gelu)");
  return ModelFamily::kSdxl;
}

}  // namespace sdtune::model
