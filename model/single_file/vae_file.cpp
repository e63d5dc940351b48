#include "model/single_file/vae_file.h"

#include <string>
#include <system_error>
#include <utility>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/nn/initial_values.h"
#include "model/single_file/ldm_parts.h"
#include "model/weights/model_parts.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLdmStart = "encoder.down.";  // of a VAE alone; diffusers says encoder.down_blocks.

// What training code keeps beside the weights: the discriminator, the averaged copy.
bool is_of_training(const std::string& name) {
  return name.starts_with("loss.") || name.starts_with(kEmaPrefix);
}

TensorSource source_of(const LdmFile& file, const AutoencoderKL& vae) {
  const bool prefixed = file.has_under(kVaePrefix);
  const LdmPart part{"vae", kVaePart, prefixed ? kVaePrefix : "", ldm_vae_names(vae->config()), vae.ptr()};
  NamedTensors tensors;
  for (auto& [name, tensor] : take_part(file, part, false).tensors) {
    if (!is_of_training(name)) tensors.emplace_back(std::move(name), std::move(tensor));
  }
  return TensorSource::of_tensors(file.where(), tensors);
}

AutoencoderKL read_file(const fs::path& path, const ModelBundle& bundle) {
  AutoencoderKL vae = nullptr;
  {
    const WithoutInitialValues every_weight_is_loaded;
    vae = AutoencoderKL(bundle.vae->config());
  }
  const LdmFile file(path);
  const bool ldm = file.has_under(kVaePrefix) || file.has_under(kLdmStart);
  const TensorSource source = ldm ? source_of(file, vae) : TensorSource::of_file(path);
  load_weights(*vae, source, kVaePart.family, bundle.dtype(), bundle.device());
  vae->eval();
  return vae;
}

AutoencoderKL read_folder(const fs::path& path, const ModelBundle& bundle) {
  const fs::path part = is_file(path / "config.json") ? path : path / "vae";
  return load_vae(part, bundle.dtype(), bundle.device());
}

}  // namespace

void replace_vae(ModelBundle& bundle, const fs::path& path) {
  std::error_code status;
  AutoencoderKL vae = fs::is_directory(path, status) ? read_folder(path, bundle) : read_file(path, bundle);
  const std::int64_t channels = bundle.vae->config().latent_channels;
  if (vae->config().latent_channels != channels) {
    throw WeightError(path.string() + ": latent_channels", "is not what the model's UNet works on (got " +
                                                               std::to_string(vae->config().latent_channels) +
                                                               "; allowed: " + std::to_string(channels) + ")");
  }
  vae->set_tiling(bundle.vae->tiling());
  vae->set_slicing(bundle.vae->slicing());
  bundle.vae = std::move(vae);
}

}  // namespace sdtune::model
