// How a portrait is looked at. Units are the body's: a head is about 1.7 high and turns about the origin.
#pragma once

namespace sdtune::train::portrait {

inline constexpr float kCameraZ = 8.0f;
inline constexpr float kCameraY = -0.20f;
inline constexpr float kHalfHeight = 1.65f;  // of the plane z = 0 that a picture shows at zoom 1

}  // namespace sdtune::train::portrait
