#include "train/observe/curve_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

namespace sdtune::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::pair<double, double>> points_of(const std::string& svg, const std::string& style) {
  std::vector<std::pair<double, double>> points;
  const std::string head = "class=\"" + style + "\" points=\"";
  const std::size_t begin = svg.find(head) + head.size();
  const std::string text = svg.substr(begin, svg.find('"', begin) - begin);
  const std::regex pair("([-\\d.]+),([-\\d.]+)");
  for (std::sregex_iterator at(text.begin(), text.end(), pair), end; at != end; ++at) {
    points.emplace_back(std::stod((*at)[1]), std::stod((*at)[2]));
  }
  return points;
}

TEST(CurveSvg, AxesHaveRoundNumbersAroundTheValues) {
  EXPECT_THAT(axis_numbers(0.13, 0.88, 5), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(axis_numbers(1, 60, 5), ElementsAre(0, 20, 40, 60));
  EXPECT_THAT(axis_numbers(-3, 4, 5), ElementsAre(-4, -2, 0, 2, 4));
  for (const auto& [low, high] : {std::pair(1e-7, 3e-4), std::pair(0.999, 1.001), std::pair(17.0, 9e5)}) {
    const std::vector<double> numbers = axis_numbers(low, high, 5);
    EXPECT_LE(numbers.size(), 5U);
    EXPECT_LE(numbers.front(), low * (1 + 1e-6));
    EXPECT_GE(numbers.back(), high * (1 - 1e-6));
  }
}

TEST(CurveSvg, AConstantIsNoCurve) {
  EXPECT_EQ(curve_svg({"rate", "", {{1, 0.5}, {2, 0.5}, {3, 0.5}}}), "");
  EXPECT_EQ(curve_svg({"rate", "", {{1, 0.5}}}), "");
  EXPECT_EQ(curve_svg({"rate", "", {{1, 0.5}, {2, std::nan("")}}}), "");
  EXPECT_NE(curve_svg({"rate", "", {{1, 0.5}, {2, 0.25}}}), "");
}

TEST(CurveSvg, WhatDiffersByRoundingIsAConstant) {
  const double next = 1 + 2.2e-16;
  ASSERT_GT(next, 1);
  EXPECT_EQ(curve_svg({"rate", "", {{1, 1}, {2, next}}}), "");
  EXPECT_EQ(curve_svg({"rate", "", {{1, -next}, {2, -1}}}), "");
  EXPECT_THAT(axis_numbers(1, next, 5), ElementsAre(1, next));
  EXPECT_EQ(curve_svg({"rate", "", {{1, 1}, {2, 1 + 1e-13}}}), "");
  EXPECT_NE(curve_svg({"rate", "", {{1, 1}, {2, 1 + 1e-11}}}), "");
  EXPECT_NE(curve_svg({"rate", "", {{1, 0}, {2, 1e-300}}}), "");
}

TEST(CurveSvg, SaysNameUnitAndExtremes) {
  const std::string svg = curve_svg({"a <speed>", "photos/s", {{1, 4}, {2, 2}, {3, 3}}});
  EXPECT_THAT(svg, HasSubstr("a &lt;speed&gt; (photos/s)"));
  EXPECT_THAT(svg, HasSubstr("lowest 2, highest 4, last 3"));
  EXPECT_THAT(svg, Not(HasSubstr("<speed>")));
  EXPECT_THAT(svg, HasSubstr(">step</text>"));
}

// As the memory of a process that grows by some pages.
TEST(CurveSvg, NumbersOfAnAxisDiffer) {
  const std::string svg = curve_svg({"highest memory", "GiB", {{1, 5.80121}, {2, 5.80129}}});
  for (const char* number : {">5.8012<", ">5.80125<", ">5.8013<"}) EXPECT_THAT(svg, HasSubstr(number));
}

TEST(CurveSvg, StepsHaveAllOfTheirDigits) {
  const std::string svg = curve_svg({"loss", "", {{10000, 1}, {12345, 2}, {30000, 3}}});
  for (const char* step : {">10000<", ">15000<", ">30000<"}) EXPECT_THAT(svg, HasSubstr(step));
  EXPECT_THAT(svg, Not(HasSubstr("e+04")));
}

TEST(CurveSvg, FewValuesHaveDotsAndManyAMean) {
  Curve few{"loss", "", {}}, many{"loss", "", {}};
  for (int step = 1; step <= 40; ++step) few.points.emplace_back(step, step % 2);
  for (int step = 1; step <= 200; ++step) many.points.emplace_back(step, step % 2);
  EXPECT_THAT(curve_svg(few), HasSubstr("<circle"));
  EXPECT_THAT(curve_svg(few), Not(HasSubstr("thin")));
  const std::string svg = curve_svg(many);
  EXPECT_THAT(svg, Not(HasSubstr("<circle")));
  // The mean of a value that is 0 and 1 in turn is near a half, which the values themselves never are.
  const auto mean = points_of(svg, "bold"), values = points_of(svg, "thin");
  const double top = values[0].second, bottom = values[1].second, middle = (top + bottom) / 2;
  for (std::size_t i = 20; i < 180; ++i) EXPECT_NEAR(mean[i].second, middle, std::abs(top - bottom) * 0.06) << i;
  EXPECT_GT(std::abs(values[20].second - middle), std::abs(top - bottom) * 0.4);
}

TEST(CurveSvg, ALongRunHasNotMorePoints) {
  Curve curve{"loss", "", {}};
  for (int step = 1; step <= 100000; ++step) curve.points.emplace_back(step, std::sin(step));
  EXPECT_LE(points_of(curve_svg(curve), "thin").size(), 600U);
  EXPECT_LT(curve_svg(curve).size(), 40000U);
}

}  // namespace
}  // namespace sdtune::train
