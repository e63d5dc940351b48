#include "train/portrait/scene/float4.h"

#include <gtest/gtest.h>

#include <array>

#include "train/portrait/scene/portrait_math.h"

namespace sdtune::train::portrait {
namespace {

constexpr Vec3 kRadii{0.5f, 1.25f, 0.75f};

Vec3 point(std::uint32_t seed) {
  const auto number = [seed](int axis) { return 4.0f * hash_unit(axis, 0, seed) - 2.0f; };
  return {number(0), number(1), number(2)};
}

// Every formula of the renderer, for one point or four.
template <Number F>
std::array<F, 7> all_formulas(Vec3Of<F> p) {
  return {ellipsoid(p, kRadii),       capsule(p, {0.1f, 0.2f, 0.3f}, {-0.5f, 0.4f, 0.9f}, 0.07f),
          disc(p, 0.9f, 0.2f, 0.05f), ring(p, 0.4f, 0.03f),
          smooth_min(p.x, p.y, 0.3f), smooth_max(p.y, p.z, 0.1f),
          sine_of_turns(p.z)};
}

TEST(Float4, ComputesTheBitsOfEachNumberByItself) {
  for (std::uint32_t seed = 0; seed < 400; seed += 4) {
    const Vec3 a = point(seed), b = point(seed + 1), c = point(seed + 2), d = point(seed + 3);
    const Vec3x4 four{{a.x, b.x, c.x, d.x}, {a.y, b.y, c.y, d.y}, {a.z, b.z, c.z, d.z}};
    const std::array<Float4, 7> together = all_formulas(four);
    for (int lane = 0; lane < 4; ++lane) {
      const std::array<float, 7> alone = all_formulas(point(seed + static_cast<std::uint32_t>(lane)));
      for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(together[i].at(lane), alone[i]) << i << " of " << seed;
    }
  }
}

TEST(Float4, SelectsByLane) {
  const Float4 chosen = select(Float4(1, 5, 2, 7) < Float4(4), Float4(-1), Float4(1, 2, 3, 4));
  const float expected[] = {-1, 2, -1, 4};
  for (int lane = 0; lane < 4; ++lane) EXPECT_EQ(chosen.at(lane), expected[lane]);
  EXPECT_EQ(magnitude(Float4(-3, 3, -0.5f, 0)).at(2), 0.5f);
  EXPECT_TRUE(any(Float4(1, 2, 3, 4) > Float4(3)));
  EXPECT_FALSE(any(Float4(1, 2, 3, 4) > Float4(5)));
}

}  // namespace
}  // namespace sdtune::train::portrait
