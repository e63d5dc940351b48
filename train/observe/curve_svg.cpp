#include "train/observe/curve_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "train/observe/html_text.h"

namespace sdtune::train {
namespace {

constexpr double kWidth = 640, kHeight = 160;  // of the plot, px
constexpr double kTop = 24;                    // for the words above it
constexpr std::size_t kMostPoints = 1000;
constexpr std::size_t kWindows = 40;

using Points = std::vector<std::pair<double, double>>;

std::string short_number(double value) {
  return fmt::format("{:.4g}", value);
}

// Means of `size` neighbours each.
Points means(const Points& points, std::size_t size) {
  Points shorter;
  for (std::size_t begin = 0; begin < points.size(); begin += size) {
    const std::size_t end = std::min(begin + size, points.size());
    double step = 0, value = 0;
    for (std::size_t i = begin; i < end; ++i) {
      step += points[i].first;
      value += points[i].second;
    }
    const auto count = static_cast<double>(end - begin);
    shorter.emplace_back(step / count, value / count);
  }
  return shorter;
}

struct Frame {
  double first, last, low, high;

  std::string line(const Points& points, const char* style) const {
    std::string text = "<polyline fill=\"none\" ";
    text.append(style).append(" points=\"");
    for (const auto& [step, value] : points) {
      const double x = (step - first) / (last - first) * kWidth;
      const double y = kTop + (high > low ? (high - value) / (high - low) : 0.5) * kHeight;
      text += fmt::format("{:.1f},{:.1f} ", x, y);
    }
    return text + "\"/>";
  }
};

}  // namespace

std::string curve_svg(const Curve& curve) {
  Points points;
  for (const auto& point : curve.points) {
    if (std::isfinite(point.second)) points.push_back(point);
  }
  if (points.size() < 2 || points.back().first <= points.front().first) return {};
  const auto by_value = [](const auto& left, const auto& right) { return left.second < right.second; };
  const auto [low, high] = std::minmax_element(points.begin(), points.end(), by_value);
  const Frame frame{points.front().first, points.back().first, low->second, high->second};
  const std::string words = "lowest " + short_number(frame.low) + ", highest " + short_number(frame.high) + ", last " +
                            short_number(points.back().second) + "; steps " + short_number(frame.first) + " to " +
                            short_number(frame.last);
  std::string svg = "<figure><svg viewBox=\"0 0 640 188\" role=\"img\" aria-label=\"" + html_escaped(curve.name) +
                    ": " + words + "\"><text x=\"0\" y=\"14\">" + html_escaped(curve.name) + "</text>";
  const bool many = points.size() > kWindows;
  svg += frame.line(means(points, (points.size() + kMostPoints - 1) / kMostPoints),
                    many ? "class=\"thin\"" : "class=\"bold\"");
  if (many) svg += frame.line(means(points, (points.size() + kWindows - 1) / kWindows), "class=\"bold\"");
  return svg + "</svg><figcaption>" + words + "</figcaption></figure>\n";
}

}  // namespace sdtune::train
