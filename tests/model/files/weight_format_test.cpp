#include "model/files/weight_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/base/error.h"

namespace sdtune {
namespace {

using ::testing::HasSubstr;

struct Foreign {
  const char* name;
  std::string content;
  const char* says;
  const char* hint;
};

std::ostream& operator<<(std::ostream& stream, const Foreign& foreign) {
  return stream << foreign.name;
}

class ForeignWeights : public ::testing::TestWithParam<Foreign> {};

TEST_P(ForeignWeights, AreRefusedByContentWithAWayOut) {
  try {
    refuse_other_formats(std::as_bytes(std::span(GetParam().content)), "model.safetensors");
    FAIL() << "was accepted";
  } catch (const WeightError& error) {
    EXPECT_THAT(error.problems().front().what, HasSubstr(GetParam().says));
    EXPECT_THAT(error.problems().front().hint, HasSubstr(GetParam().hint));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ForeignWeights,
    ::testing::Values(Foreign{"zip", "PK\x03\x04" + std::string(60, 'z'), "PyTorch archive", "safetensors"},
                      Foreign{"pickle_2", "\x80\x02" + std::string("cos\nsystem\n"), "pickle", "safetensors"},
                      Foreign{"pickle_4", "\x80\x04\x95" + std::string(40, 'p'), "pickle", "safetensors"},
                      Foreign{"gguf", "GGUF" + std::string(40, '\x03'), "GGUF", "original"},
                      Foreign{"hdf5", "\x89HDF\r\n\x1a\n" + std::string(40, 'h'), "HDF5", "PyTorch"},
                      Foreign{"page", "\n  <!DOCTYPE html><html>", "web page", "download"},
                      Foreign{"page_without_doctype", "<HTML><body>401</body>", "web page", "download"},
                      Foreign{"lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:0", "git-lfs", "lfs pull"},
                      Foreign{"nothing", "", "is empty", "again"}));

TEST(WeightFormat, LetsEverythingElsePass) {
  const std::string text = "neither this nor that";
  refuse_other_formats(std::as_bytes(std::span(text)), "x");
}

}  // namespace
}  // namespace sdtune
