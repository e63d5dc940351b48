// Many portraits at once, on several threads: what training data is made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/portrait/label.h"
#include "train/portrait/person.h"

namespace sdtune::train::portrait {

// All that one picture shows, before it is drawn.
struct Portrait {
  PictureSeeds seeds;
  Identity who;
  Context now;
  std::string caption;
};

// Identity, context and caption of these seeds; the caption's words are drawn from the picture's seed.
Portrait draw_portrait(const PictureSeeds& seeds);

// The same, but always as a photo: what somebody who wants portraits has of himself, and no sketch.
Portrait draw_photo(const PictureSeeds& seeds);

// RGB bytes [portraits.size(), size, size, 3], each picture as render() draws it, for any number of threads. Throws
// std::invalid_argument for a size that render() refuses and for threads < 1.
std::vector<std::uint8_t> render_batch(const std::vector<Portrait>& portraits, std::int64_t size, int threads);

}  // namespace sdtune::train::portrait
