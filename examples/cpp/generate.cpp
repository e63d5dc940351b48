// Generates one image of a prompt with a diffusers folder: generate FOLDER PROMPT FILE.png
//
// The headers of sdtune::model are no stable interface: see docs/versions.md. Set GOMP_SPINCOUNT=1000 in the
// environment where other programs share the cores; the program `sdtune` does that itself.
#include <torch/types.h>

#include <cstdio>
#include <filesystem>

#include "model/base/error.h"
#include "model/core/image_tensor.h"
#include "model/files/file_system.h"
#include "model/image/png_write.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/text_to_image.h"

namespace {

// Loads the model, samples with its own scheduler and writes the image.
void generate(const std::filesystem::path& folder, const char* prompt, const std::filesystem::path& file) {
  sdtune::model::ModelBundle bundle = sdtune::model::load_bundle(folder, torch::kFloat32, torch::kCPU);
  const auto scheduler = sdtune::model::make_sampler(bundle);
  sdtune::model::SampleRequest request;
  request.prompts = {prompt};
  request.steps = 20;
  request.seeds = {0};
  const torch::Tensor latents = sdtune::model::generate_latents(bundle, *scheduler, request);
  const torch::Tensor pixels = sdtune::model::decode_latents(bundle, latents);  // [1, 3, H, W] in [0, 1]
  sdtune::model::write_png(sdtune::real_file_system(), file, sdtune::model::tensor_to_image(pixels[0]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: generate FOLDER PROMPT FILE.png\n");
    return 2;
  }
  try {
    generate(argv[1], argv[2], argv[3]);
  } catch (const sdtune::Error& error) {  // a mistake of the user: place, cause, what is allowed
    std::fprintf(stderr, "generate: error: %s\n", error.what());
    return 2;
  }
  std::printf("%s\n", argv[3]);
  return 0;
}
