#include "train/observe/curve_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "train/observe/html_text.h"

namespace sdtune::train {
namespace {

// px: the plot, and around it the numbers of the axes.
constexpr double kLeft = 58, kTop = 12, kWidth = 290, kHeight = 150, kRight = 12, kBottom = 36;
constexpr std::size_t kMostPoints = 600;
constexpr std::size_t kFewPoints = 40;
constexpr std::size_t kWindows = 20;
constexpr int kMostRows = 5, kMostColumns = 5;
constexpr int kMostDigits = 17;  // of a double

using Points = std::vector<std::pair<double, double>>;

// Differences below this share of the values are rounding, and axes of them have no numbers of their own.
constexpr double kSameShare = 1e-12;

bool is_constant(double low, double high) {
  return !(high - low > kSameShare * std::max(std::abs(low), std::abs(high)));
}

std::string short_number(double value) {
  return fmt::format("{:.4g}", value == 0 ? 0.0 : value);
}

// With as many digits as tell neighbours apart: memory that grows by a page lies between numbers that begin alike.
std::vector<std::string> axis_texts(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (int digits = 4; digits <= kMostDigits; ++digits) {
    texts.clear();
    for (const double number : numbers) texts.push_back(fmt::format("{:.{}g}", number == 0 ? 0.0 : number, digits));
    if (std::adjacent_find(texts.begin(), texts.end()) == texts.end()) break;
  }
  return texts;
}

// Whole ones with all of their digits: 15000 and not 1.5e+04.
std::string step_text(double step) {
  return step == std::floor(step) ? fmt::format("{:.0f}", step) : short_number(step);
}

// Means of `size` neighbours each, so that a long run's file stays small.
Points thinned(const Points& points, std::size_t size) {
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

// The mean of the `size` values around each, of fewer at both ends.
Points smoothed(const Points& points, std::size_t size) {
  std::vector<double> sums(points.size() + 1, 0.0);
  for (std::size_t i = 0; i < points.size(); ++i) sums[i + 1] = sums[i] + points[i].second;
  Points means;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t half = std::min({size / 2, i, points.size() - 1 - i});
    const double sum = sums[i + half + 1] - sums[i - half];
    means.emplace_back(points[i].first, sum / static_cast<double>(2 * half + 1));
  }
  return means;
}

struct Axes {
  std::vector<double> rows, columns;

  double x(double step) const { return kLeft + (step - columns.front()) / (columns.back() - columns.front()) * kWidth; }
  double y(double value) const { return kTop + (rows.back() - value) / (rows.back() - rows.front()) * kHeight; }

  std::string drawn() const {
    std::string svg;
    const std::vector<std::string> texts = axis_texts(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double row = rows[i];
      svg += fmt::format("<line class=\"grid\" x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft,
                         kLeft + kWidth, y(row), y(row));
      svg +=
          fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 6, y(row) + 4, texts[i]);
    }
    for (const double column : columns) {
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>", x(column),
                         kTop + kHeight + 16, step_text(column));
    }
    return svg + fmt::format("<text class=\"axis\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">step</text>",
                             kLeft + kWidth / 2, kTop + kHeight + 32);
  }

  std::string line(const Points& points, const char* style) const {
    std::string text = "<polyline fill=\"none\" class=\"";
    text.append(style).append("\" points=\"");
    for (const auto& [step, value] : points) text += fmt::format("{:.1f},{:.1f} ", x(step), y(value));
    return text + "\"/>";
  }

  std::string dots(const Points& points) const {
    std::string text;
    for (const auto& [step, value] : points) {
      text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", x(step), y(value));
    }
    return text;
  }
};

}  // namespace

std::vector<double> axis_numbers(double low, double high, int most) {
  if (is_constant(low, high)) return {low, high};
  const double rough = (high - low) / std::max(1, most - 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0}) {
    const double step = factor * power;
    const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
    if (last - first + 1 > most) continue;
    std::vector<double> numbers;
    for (int i = 0; i <= static_cast<int>(last - first); ++i) numbers.push_back((first + i) * step);
    if (numbers.size() >= 2) return numbers;
  }
  return {low, high};
}

std::string curve_svg(const Curve& curve) {
  Points points;
  for (const auto& point : curve.points) {
    if (std::isfinite(point.second)) points.push_back(point);
  }
  if (points.size() < 2 || points.back().first <= points.front().first) return {};
  const auto by_value = [](const auto& left, const auto& right) { return left.second < right.second; };
  const auto [low, high] = std::minmax_element(points.begin(), points.end(), by_value);
  if (is_constant(low->second, high->second)) return {};
  const Axes axes{axis_numbers(low->second, high->second, kMostRows),
                  axis_numbers(points.front().first, points.back().first, kMostColumns)};
  const std::string name = curve.name + (curve.unit.empty() ? "" : " (" + curve.unit + ")");
  const std::string words = "lowest " + short_number(low->second) + ", highest " + short_number(high->second) +
                            ", last " + short_number(points.back().second);
  const bool many = points.size() > kFewPoints;
  std::string svg = "<figure class=\"curve\"><figcaption>" + html_escaped(name) + "</figcaption><svg viewBox=\"0 0 " +
                    fmt::format("{:.0f} {:.0f}", kLeft + kWidth + kRight, kTop + kHeight + kBottom) +
                    "\" role=\"img\" aria-label=\"" + html_escaped(name) + ": " + words + "\">" + axes.drawn();
  svg += axes.line(thinned(points, (points.size() + kMostPoints - 1) / kMostPoints), many ? "thin" : "bold");
  if (many) {
    const Points means = smoothed(points, std::max<std::size_t>(3, points.size() / kWindows));
    svg += axes.line(thinned(means, (means.size() + kMostPoints - 1) / kMostPoints), "bold");
  } else {
    svg += axes.dots(points);
  }
  return svg + "</svg><small>" + words + "</small></figure>\n";
}

}  // namespace sdtune::train
