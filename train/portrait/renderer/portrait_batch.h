// Many portraits at once, on several threads: what training data is made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/portrait/renderer/label.h"
#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// All that one image shows, before it is rendered.
struct Portrait {
  ImageSeeds seeds;
  Identity who;
  Context now;
  std::string caption;
};

// Identity, context and caption of these seeds; the caption's words are drawn from the image's seed.
Portrait draw_portrait(const ImageSeeds& seeds, Detail detail = Detail::k64);

// The same, but always as a photo and never as a sketch, as users' photos are.
Portrait draw_photo(const ImageSeeds& seeds, Detail detail = Detail::k64);

// RGB bytes [portraits.size(), size, size, 3], each image as render() makes it, for any number of threads. Throws
// std::invalid_argument for a size that render() refuses and for threads < 1.
std::vector<std::uint8_t> render_batch(const std::vector<Portrait>& portraits, std::int64_t size, int threads);

}  // namespace sdtune::train::portrait
