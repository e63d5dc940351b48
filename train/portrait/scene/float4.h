// Four numbers that go through the renderer's arithmetic side by side, each by the same operations, rounded the same,
// as one by itself: SSE2 is part of every x86-64 processor, so the images stay the same bits everywhere.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>

namespace sdtune::train::portrait {

// A yes or no a lane.
struct Mask4 {
  using Lanes = std::int32_t __attribute__((vector_size(16)));
  Lanes lanes{};  // 0 or -1

  friend Mask4 operator&(Mask4 a, Mask4 b) { return {a.lanes & b.lanes}; }
  friend Mask4 operator|(Mask4 a, Mask4 b) { return {a.lanes | b.lanes}; }
  friend Mask4 operator!(Mask4 a) { return {~a.lanes}; }
  bool at(int lane) const { return lanes[lane] != 0; }
};

struct Float4 {
  using Lanes = float __attribute__((vector_size(16)));
  Lanes lanes{};

  Float4() = default;
  Float4(float all) : lanes{all, all, all, all} {}  // implicit: constants stand in formulas as they do for float
  explicit Float4(Lanes values) : lanes(values) {}
  Float4(float a, float b, float c, float d) : lanes{a, b, c, d} {}
  float at(int lane) const { return lanes[lane]; }

  friend Float4 operator+(Float4 a, Float4 b) { return Float4(a.lanes + b.lanes); }
  friend Float4 operator-(Float4 a, Float4 b) { return Float4(a.lanes - b.lanes); }
  friend Float4 operator*(Float4 a, Float4 b) { return Float4(a.lanes * b.lanes); }
  friend Float4 operator/(Float4 a, Float4 b) { return Float4(a.lanes / b.lanes); }
  friend Float4 operator-(Float4 a) { return Float4(-a.lanes); }
  friend Mask4 operator<(Float4 a, Float4 b) { return {a.lanes < b.lanes}; }
  friend Mask4 operator>(Float4 a, Float4 b) { return {a.lanes > b.lanes}; }
};

inline bool any(bool yes) {
  return yes;
}
inline bool any(Mask4 mask) {
  return (mask.lanes[0] | mask.lanes[1] | mask.lanes[2] | mask.lanes[3]) != 0;
}

// `yes` in the lanes of the mask, `no` in the others.
inline float select(bool mask, float yes, float no) {
  return mask ? yes : no;
}
inline Float4 select(Mask4 mask, Float4 yes, Float4 no) {
  return Float4(mask.lanes ? yes.lanes : no.lanes);
}

// As std::min, std::max, std::abs, std::sqrt and std::floor, for either kind of number.
inline float least(float a, float b) {
  return b < a ? b : a;
}
inline Float4 least(Float4 a, Float4 b) {
  return select(b < a, b, a);
}
inline float most(float a, float b) {
  return a < b ? b : a;
}
inline Float4 most(Float4 a, Float4 b) {
  return select(a < b, b, a);
}
inline float magnitude(float a) {
  return std::abs(a);
}
inline Float4 magnitude(Float4 a) {
  constexpr std::int32_t kAllButSign = 0x7fffffff;
  const Mask4::Lanes bits = reinterpret_cast<Mask4::Lanes>(a.lanes) & kAllButSign;
  return Float4(reinterpret_cast<Float4::Lanes>(bits));
}
inline float root(float a) {
  return std::sqrt(a);
}
inline Float4 root(Float4 a) {
  Float4 roots;
  for (int lane = 0; lane < 4; ++lane) roots.lanes[lane] = std::sqrt(a.lanes[lane]);
  return roots;
}
inline float whole(float a) {
  return std::floor(a);
}
// For numbers below 2^31: SSE2 rounds towards zero only, and a call of std::floor a lane takes most of a sine's time.
inline Float4 whole(Float4 a) {
  const auto cut = __builtin_convertvector(a.lanes, Mask4::Lanes);
  const auto below = __builtin_convertvector(cut, Float4::Lanes);
  return Float4(below) + select(a < Float4(below), Float4(-1.0f), Float4(0.0f));
}

template <typename F>
concept Number = std::same_as<F, float> || std::same_as<F, Float4>;

}  // namespace sdtune::train::portrait
