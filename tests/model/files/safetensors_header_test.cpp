#include "model/files/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "model/base/error.h"

namespace sdtune {
namespace {

using ::testing::HasSubstr;

std::string file_of(const std::string& json, std::size_t data_bytes) {
  std::uint64_t length = json.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + json + std::string(data_bytes, 'x');
}

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), "w.safetensors");
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(SafetensorsHeader, ReadsNamesShapesRangesAndMetadata) {
  const auto header = parse(file_of(R"({"__metadata__":{"format":"pt"},"b":)" + tensor("F32", "[2,3]", "[4,28]") +
                                        R"(,"a":)" + tensor("F16", "[2]", "[0,4]") + "}   ",
                                    28));
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.tensors.at("b").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(header.tensors.at("b").begin, 4u);
  EXPECT_EQ(header.tensors.at("a").dtype, "F16");
}

TEST(SafetensorsHeader, ReadsScalarsTensorsWithoutElementsAndFilesWithoutTensors) {
  EXPECT_EQ(parse(file_of(R"({"s":)" + tensor("I64", "[]", "[0,8]") + "}", 8)).tensors.at("s").shape.size(), 0u);
  const auto header =
      parse(file_of(R"({"none":)" + tensor("F32", "[0,7]", "[4,4]") + R"(,"also":)" + tensor("F32", "[3,0]", "[4,4]") +
                        R"(,"one":)" + tensor("F32", "[1]", "[0,4]") + "}",
                    4));
  EXPECT_EQ(header.tensors.size(), 3u);
  EXPECT_TRUE(parse(file_of("{}", 0)).tensors.empty());
}

// A header whose length begins with the bytes of a pickle or a zip is still a header.
TEST(SafetensorsHeader, IsNotTakenForAPickleByItsLength) {
  for (const std::size_t length : {0x280, 0x380, 0x480, 0x580}) {
    std::string json = R"({"a":)" + tensor("U8", "[1]", "[0,1]") + "}";
    json.append(length - json.size(), ' ');
    EXPECT_EQ(parse(file_of(json, 1)).tensors.size(), 1u) << length;
  }
}

TEST(SafetensorsHeader, WritesWhatItReads) {
  std::vector<std::pair<std::string, TensorEntry>> tensors = {
      {"a\"\n\xC3\xA4", {"BF16", {3}, 0, 0}}, {"empty", {"F32", {0}, 0, 0}}, {"scalar", {"F64", {}, 0, 0}}};
  const std::string text = make_safetensors_header(tensors, {{"format", "pt"}});
  EXPECT_EQ(text.size() % 8, 0u);
  const SafetensorsHeader header = parse(text + std::string(14, 'x'));
  EXPECT_EQ(header.data_offset, text.size());
  EXPECT_EQ(header.metadata.at("format"), "pt");
  for (const auto& [name, entry] : tensors) {
    EXPECT_EQ(header.tensors.at(name).shape, entry.shape);
    EXPECT_EQ(header.tensors.at(name).begin, entry.begin);
    EXPECT_EQ(header.tensors.at(name).end, entry.end);
  }
}

struct Refusal {
  const char* name;
  std::string file;
  const char* says;
};

std::ostream& operator<<(std::ostream& stream, const Refusal& refusal) {
  return stream << refusal.name;
}

std::string ten_on_one_range() {
  std::string json = "{";
  for (int i = 0; i < 10; ++i) {
    json += (i > 0 ? "," : "") + std::string("\"t") + std::to_string(i) + "\":" + tensor("F32", "[2,2]", "[0,16]");
  }
  return json + "}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets, std::size_t data) {
  return file_of(R"({"t":)" + tensor(dtype, shape, offsets) + "}", data);
}

class RefusedHeader : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedHeader, NamesFileAndFault) {
  try {
    parse(GetParam().file);
    FAIL() << "was accepted";
  } catch (const WeightError& error) {
    EXPECT_THAT(error.what(), HasSubstr("w.safetensors"));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().says));
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lengths, RefusedHeader,
    ::testing::Values(Refusal{"empty", "", "is empty"}, Refusal{"seven_bytes", std::string(7, 'a'), "too short"},
                      Refusal{"only_a_length", std::string(8, '\0'), "not a JSON object"},
                      Refusal{"over_100_MB", std::string("\x01\xE1\xF5\x05\0\0\0\0{", 9), "over 100 MB"},
                      Refusal{"longer_than_file", std::string("\x7F\0\0\0\0\0\0\0{}", 10), "cut off"},
                      Refusal{"all_ones", std::string(8, '\xFF') + "{}", "over 100 MB"},
                      Refusal{"missing_byte", one("F32", "[2,2]", "[0,16]", 15), "cut off or has extra bytes"},
                      Refusal{"trailing_byte", one("F32", "[2,2]", "[0,16]", 17), "cut off or has extra bytes"}));

INSTANTIATE_TEST_SUITE_P(
    Json, RefusedHeader,
    ::testing::Values(
        Refusal{"not_json", file_of("{broken", 0), "not JSON"},
        Refusal{"padded_in_front", file_of("  {}", 0), "not a JSON object"},
        Refusal{"a_list", file_of("[]", 0), "not a JSON object"}, Refusal{"two_values", file_of("{}{}", 0), "not JSON"},
        Refusal{"not_utf8", file_of("{\"\xFF\xFE\":1}", 0), "not JSON"},
        Refusal{"lone_surrogate", file_of(R"({"\ud800":1})", 0), "not JSON"},
        Refusal{"nul_inside", file_of(std::string("{\"a\":\0}", 7), 0), "not JSON"},
        Refusal{"deep", file_of(R"({"a":)" + std::string(100'000, '['), 0), "where none belongs"},
        Refusal{"key_twice",
                file_of(R"({"t":)" + tensor("U8", "[1]", "[0,1]") + R"(,"t":)" + tensor("U8", "[1]", "[0,1]") + "}", 1),
                "given twice"},
        Refusal{"metadata_twice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "given twice"},
        Refusal{"field_twice", file_of(R"({"t":{"dtype":"U8","dtype":"F32","shape":[1],"data_offsets":[0,1]}})", 1),
                "given twice"},
        Refusal{"metadata_not_text", file_of(R"({"__metadata__":{"a":null}})", 0), "null"},
        Refusal{"metadata_nested", file_of(R"({"__metadata__":{"a":{}}})", 0), "where none belongs"},
        Refusal{"tensor_is_number", file_of(R"({"t":1})", 0), "where none belongs"},
        Refusal{"lacks_offsets", file_of(R"({"t":{"dtype":"U8","shape":[0]}})", 0), "lacks a field"},
        Refusal{"foreign_field", file_of(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})", 0),
                "has the field 'x'"}));

INSTANTIATE_TEST_SUITE_P(
    Tensors, RefusedHeader,
    ::testing::Values(Refusal{"unknown_dtype", one("F8_E5M2", "[1]", "[0,1]", 1), "dtype"},
                      Refusal{"dtype_is_number", file_of(R"({"t":{"dtype":1,"shape":[1],"data_offsets":[0,1]}})", 1),
                              "where none belongs"},
                      Refusal{"negative_size", one("F32", "[-1]", "[0,4]", 4), "whole numbers"},
                      Refusal{"broken_size", one("F32", "[1.5]", "[0,6]", 6), "whole numbers"},
                      Refusal{"size_is_text", one("F32", "[\"1\"]", "[0,4]", 4), "where none belongs"},
                      Refusal{"negative_offset", one("F32", "[1]", "[-4,0]", 4), "whole numbers"},
                      Refusal{"float_offset", one("F32", "[1]", "[0,4e0]", 4), "whole numbers"},
                      Refusal{"huge_number", one("F32", "[99999999999999999999]", "[0,4]", 4), "whole numbers"},
                      Refusal{"one_offset", one("F32", "[1]", "[0]", 4), "two numbers"},
                      Refusal{"three_offsets", one("F32", "[1]", "[0,4,4]", 4), "two numbers"},
                      Refusal{"ends_before_it_begins", one("F32", "[1]", "[4,0]", 4), "not its shape's size"},
                      Refusal{"size_is_not_the_shapes", one("F32", "[2,3]", "[0,16]", 16), "not its shape's size"},
                      Refusal{"product_over_64_bits", one("F32", "[2,18446744073709551614]", "[0,16]", 16),
                              "overflows"},
                      Refusal{"product_over_63_bits", one("F32", "[2,9223372036854775806]", "[0,16]", 16), "overflows"},
                      Refusal{"product_wraps_to_size", one("U8", "[4294967296,4294967296]", "[0,0]", 0), "overflows"},
                      Refusal{"no_bytes_of_huge_sides",
                              one("U8", "[0,4611686018427387904,4611686018427387904]", "[0,0]", 0), "overflows"},
                      Refusal{"ten_on_one_range", file_of(ten_on_one_range(), 16), "does not begin where"},
                      Refusal{"gap", one("F32", "[1]", "[4,8]", 8), "does not begin where"},
                      Refusal{"beyond_the_file", one("F32", "[4]", "[0,16]", 4), "cut off or has extra bytes"}));

// The clock is not asserted: a quadratic reader would time out.
TEST(SafetensorsHeader, ReadsALargeHeaderInLinearTime) {
  std::string json = "{";
  for (int i = 0; i < 200'000; ++i) {
    json += (i > 0 ? ",\"t" : "\"t") + std::to_string(i) + "\":" + tensor("U8", "[0]", "[0,0]");
  }
  EXPECT_EQ(parse(file_of(json + "}", 0)).tensors.size(), 200'000u);
}

}  // namespace
}  // namespace sdtune
