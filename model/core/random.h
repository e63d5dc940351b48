// The random numbers of training: a draw is a pure function of (seed, purpose, step, sample, instance or class), so a
// run does not depend on ranks, micro-batches, threads or interruption. Philox4x32-10 with a counter packed one to one
// (draw_counter.h); the CUDA kernel computes the same bits. Sampling does not use this: there a seed must give
// diffusers' image.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace sdtune::model {

// What a number is for. The values are part of what a seed means: never renumber, only append (at most 256).
enum class Draw : std::uint32_t {
  kNoise = 0,               // the noise added to a latent
  kTimestep = 1,            // the training timestep
  kLatent = 2,              // the sample of the VAE's posterior
  kFlip = 3,                // mirrored or not
  kOrder = 4,               // the order of the photos in an epoch
  kNoiseOffset = 5,         // diffusers' noise_offset
  kCrop = 6,                // where a random crop lies
  kDropout = 7,             // whether a caption is dropped
  kClassOrder = 8,          // the order of the class images in an epoch
  kWeights = 9,             // initial values of new weights
  kInputPerturbation = 10,  // noise that only the UNet sees
  kLoraDropout = 11,        // which inputs a low-rank branch does not see
  kAutoCaption = 12,        // whether a photo is trained with its automatic caption
};

// Which sample of which step. step < 2^43, sample < 2^44.
struct SampleKey {
  std::uint64_t step = 0;    // optimizer step, or epoch
  std::uint64_t sample = 0;  // global sample index
  bool class_image = false;  // a class image of prior preservation
};

struct DrawKey {
  std::uint64_t seed = 0;
  Draw purpose = Draw::kNoise;
  std::uint64_t step = 0;
  std::uint64_t sample = 0;
  bool class_image = false;
};

// Standard normal numbers for one sample, float32 on the CPU, contiguous, `shape`.
torch::Tensor draw_normal(const DrawKey& key, torch::IntArrayRef shape);

// The same for several samples: [keys.size(), shape...] on `device`; row i equals draw_normal of key i, bit for bit on
// every device. On CUDA it runs on the current stream without synchronising; with SDTUNE_KERNELS=library it is drawn on
// the host and copied. Throws DeviceError where a device gives other bits.
torch::Tensor draw_normal_batch(std::uint64_t seed, Draw purpose, const std::vector<SampleKey>& keys,
                                torch::IntArrayRef shape, torch::Device device);

// In [0, 1), 53 bits.
double draw_uniform(const DrawKey& key);

// In [0, below). A 64-bit word is scaled, so no value is favoured by more than below / 2^64.
std::int64_t draw_integer(const DrawKey& key, std::int64_t below);

// draw_integer for several samples: int64 [keys.size()] on the CPU.
torch::Tensor draw_integer_batch(std::uint64_t seed, Draw purpose, const std::vector<SampleKey>& keys,
                                 std::int64_t below);

// A permutation of 0 .. count - 1 for one epoch (Fisher and Yates, in Durstenfeld's form), uniform over all orders up
// to count / 2^64.
std::vector<std::int64_t> draw_permutation(std::uint64_t seed, Draw purpose, std::uint64_t epoch, std::int64_t count);

}  // namespace sdtune::model
