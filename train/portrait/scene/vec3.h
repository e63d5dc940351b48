// Points and directions, one or four at once.
#pragma once

#include <utility>

#include "train/portrait/scene/float4.h"

namespace sdtune::train::portrait {

struct Vec2 {
  float x = 0, y = 0;
};

// F is float, or Float4 for four points at once; the two mix as one expects.
template <Number F>
struct Vec3Of {
  F x = 0, y = 0, z = 0;
};
using Vec3 = Vec3Of<float>;
using Vec3x4 = Vec3Of<Float4>;

template <Number A, Number B>
using Wider = decltype(std::declval<A>() + std::declval<B>());

template <Number A, Number B>
constexpr Vec3Of<Wider<A, B>> operator+(Vec3Of<A> a, Vec3Of<B> b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <Number A, Number B>
constexpr Vec3Of<Wider<A, B>> operator-(Vec3Of<A> a, Vec3Of<B> b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <Number A, Number B>
constexpr Vec3Of<Wider<A, B>> operator*(Vec3Of<A> a, Vec3Of<B> b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z};
}
template <Number A, Number B>
constexpr Vec3Of<Wider<A, B>> operator*(Vec3Of<A> a, B s) {
  return {a.x * s, a.y * s, a.z * s};
}
template <Number A, Number B>
constexpr Vec3Of<Wider<A, B>> operator/(Vec3Of<A> a, Vec3Of<B> b) {
  return {a.x / b.x, a.y / b.y, a.z / b.z};
}
template <Number A, Number B>
constexpr Wider<A, B> dot(Vec3Of<A> a, Vec3Of<B> b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <Number F>
F length(Vec3Of<F> a) {
  return root(dot(a, a));
}
template <Number F>
F length(F x, F y) {
  return root(x * x + y * y);
}
template <Number F>
Vec3Of<F> normalize(Vec3Of<F> a) {
  return a * (F(1.0f) / length(a));
}

}  // namespace sdtune::train::portrait
