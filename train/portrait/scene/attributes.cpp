#include "train/portrait/scene/attributes.h"

namespace sdtune::train::portrait {

Vec3 rgb_of(Color color) {
  static constexpr std::array<Vec3, 9> kTable = {{{0.72f, 0.03f, 0.03f},
                                                  {0.04f, 0.36f, 0.07f},
                                                  {0.04f, 0.12f, 0.78f},
                                                  {0.90f, 0.68f, 0.03f},
                                                  {0.90f, 0.24f, 0.01f},
                                                  {0.26f, 0.04f, 0.55f},
                                                  {0.90f, 0.25f, 0.45f},
                                                  {0.015f, 0.015f, 0.018f},
                                                  {0.85f, 0.85f, 0.85f}}};
  return kTable[static_cast<std::size_t>(color)];
}

Vec3 rgb_of(HairColor color) {
  static constexpr std::array<Vec3, 8> kTable = {{{0.012f, 0.011f, 0.012f},
                                                  {0.085f, 0.035f, 0.014f},
                                                  {0.62f, 0.40f, 0.12f},
                                                  {0.48f, 0.085f, 0.018f},
                                                  {0.27f, 0.27f, 0.28f},
                                                  {0.82f, 0.81f, 0.78f},
                                                  {0.03f, 0.11f, 0.62f},
                                                  {0.85f, 0.17f, 0.36f}}};
  return kTable[static_cast<std::size_t>(color)];
}

}  // namespace sdtune::train::portrait
