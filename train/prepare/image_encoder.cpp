#include "train/prepare/image_encoder.h"

#include <ATen/core/grad_mode.h>

#include "model/core/device_copy.h"

namespace sdtune::train {

EncodeImages image_encoder(model::ModelBundle& bundle) {
  return [&bundle](const torch::Tensor& images) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor weight = bundle.vae->parameters().front();
    return bundle.vae->encode(model::copy_to_device(images, weight.device()).to(weight.scalar_type()));
  };
}

EncodeImages float32_image_encoder(model::ModelBundle& bundle) {
  const torch::Dtype dtype = bundle.vae->parameters().front().scalar_type();
  if (dtype == torch::kFloat32) return nullptr;
  return [&bundle, dtype](const torch::Tensor& images) {
    struct Restore {
      ~Restore() { bundle.vae->to(dtype); }
      model::ModelBundle& bundle;
      torch::Dtype dtype;
    } const restore{bundle, dtype};
    bundle.vae->to(torch::kFloat32);
    return image_encoder(bundle)(images);
  };
}

}  // namespace sdtune::train
