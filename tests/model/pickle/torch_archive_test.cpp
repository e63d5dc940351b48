#include "model/pickle/torch_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/base/error.h"
#include "tests/model/pickle/archive_bytes.h"

namespace sdtune {
namespace {

using test::archive_of;
using test::mapping;
using test::number;
using test::tensor;
using test::text;
using test::ZipOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TorchArchive parse(const std::string& file, const std::string& key = "") {
  return parse_torch_archive(std::as_bytes(std::span(file)), "w.ckpt", key);
}

const std::string kOne = mapping(text("w") + tensor({2, 2}, {2, 1}));

TEST(TorchArchive, SaysWhereTheElementsAre) {
  const std::string file = archive_of(mapping(text("w") + tensor({2}, {1}, 1)), "0123abcdefghijkl");
  const ArchivedTensor found = parse(file).tensors.at("w");
  EXPECT_EQ(found.dtype, "F32");
  EXPECT_THAT(found.shape, ElementsAre(2));
  EXPECT_THAT(found.strides, ElementsAre(1));
  EXPECT_EQ(file.substr(found.begin, found.end - found.begin), "abcdefgh");
}

TEST(TorchArchive, ReadsZip64AndAComment) {
  EXPECT_EQ(parse(archive_of(kOne, std::string(16, 's'), {.zip64 = true})).tensors.size(), 1u);
  std::string file = archive_of(kOne);
  file.replace(file.size() - 2, 2, std::string("\x05\0", 2));
  EXPECT_EQ(parse(file + "hello").tensors.size(), 1u);
}

TEST(TorchArchive, ReadsEmptyAndScalarTensors) {
  const TorchArchive archive =
      parse(archive_of(mapping(text("none") + tensor({0, 7}, {7, 1}) + text("scalar") + tensor({}, {}, 3))));
  EXPECT_EQ(archive.tensors.at("none").begin, archive.tensors.at("none").end);
  EXPECT_EQ(archive.tensors.at("scalar").end - archive.tensors.at("scalar").begin, 4u);
}

TEST(TorchArchive, TakesTheStateDictOrTheKeyThatIsNamed) {
  const std::string inner = "}(" + text("w") + tensor({1}, {1}) + "u";
  const std::string file =
      archive_of(mapping(text("epoch") + number(3) + text("ema") + inner + text("state_dict") + inner));
  EXPECT_EQ(parse(file).key, "state_dict");
  EXPECT_EQ(parse(file, "ema").key, "ema");
  EXPECT_THROW(parse(file, "epoch"), WeightError);
  const std::string other = archive_of(mapping(text("ema") + inner + text("epoch") + number(3)));
  try {
    parse(other);
    FAIL() << "was accepted";
  } catch (const WeightError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds no tensors"));
    EXPECT_THAT(error.what(), HasSubstr("--pickle-key: ema"));
  }
}

TEST(TorchArchive, NamesWhatItLeavesOut) {
  const TorchArchive archive =
      parse(archive_of(mapping(text("step") + number(7) + text("w") + tensor({1}, {1}) + text("note") + text("x"))));
  EXPECT_THAT(archive.left_out, ElementsAre("step", "note"));
}

struct Refusal {
  const char* name;
  std::string file;
  const char* says;
};

std::ostream& operator<<(std::ostream& stream, const Refusal& refusal) {
  return stream << refusal.name;
}

class RefusedArchive : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedArchive, NamesFileAndFault) {
  try {
    parse(GetParam().file);
    FAIL() << "was accepted";
  } catch (const WeightError& error) {
    EXPECT_THAT(error.what(), HasSubstr("w.ckpt"));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().says));
  }
}

std::string pickle(const std::string& code) {
  return archive_of("\x80\x02" + code);
}
std::string one(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                std::int64_t offset = 0, std::int64_t elements = 4) {
  return archive_of(mapping(text("w") + tensor(shape, strides, offset, elements)));
}
std::string recursive_list() {
  return "]q\x01h\x01"
         "a.";
}
// The same list of pairs, made a mapping again and again: what comes out would be as large as the square of the file.
std::string many_mappings() {
  std::string code = "](";
  for (int i = 0; i < 2000; ++i) code += "K\x01K\x02\x86";
  code += "eq\x01";
  for (int i = 0; i < 2000; ++i) code += "ccollections\nOrderedDict\nh\x01\x85R0";
  return code + ".";
}

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

INSTANTIATE_TEST_SUITE_P(
    Code, RefusedArchive,
    ::testing::Values(
        Refusal{"os_system", pickle("cos\nsystem\n" + text("id") + "\x85R."), "names os.system"},
        Refusal{"posix", pickle("cposix\nsystem\n" + text("id") + "\x85R."), "names posix.system"},
        Refusal{"stack_global", pickle(text("os") + text("system") + "\x93" + text("id") + "\x85R."), "os.system"},
        Refusal{"eval", pickle("cbuiltins\neval\n" + text("1") + "\x85R."), "names builtins.eval"},
        Refusal{"getattr", pickle("cbuiltins\ngetattr\n."), "names builtins.getattr"},
        Refusal{"torch_load", pickle("ctorch\nload\n."), "names torch.load"},
        Refusal{"dotted", pickle(text("torch") + text("_utils._rebuild_tensor_v2") + "\x93."), "names torch._utils"},
        Refusal{"newobj", pickle("csubprocess\nPopen\n)\x81."), "names subprocess.Popen"},
        Refusal{"inst", pickle("(ios\nsystem\n."), "0x69"}, Refusal{"obj", pickle("(o."), "0x6f"},
        Refusal{"extension", pickle("\x82\x01."), "0x82"}, Refusal{"text_opcode", pickle("I1\n."), "0x49"},
        Refusal{"build_on_a_number", pickle("K\x01}b."), "gives a state"},
        Refusal{"build_on_a_name", pickle("ctorch\nSize\n}b."), "gives a state"},
        Refusal{"call_of_a_number", pickle("K\x01)R."), "calls a value"},
        Refusal{"call_of_a_storage_type", pickle("ctorch\nFloatStorage\n)R."), "calls torch.FloatStorage"},
        Refusal{"protocol_9", archive_of("\x80\x09}."), "protocol"}));

INSTANTIATE_TEST_SUITE_P(
    Structure, RefusedArchive,
    ::testing::Values(
        Refusal{"empty_pickle", archive_of(""), "cut off"}, Refusal{"no_stop", pickle("}"), "cut off"},
        Refusal{"stop_alone", pickle("."), "takes a value"}, Refusal{"no_mark", pickle("t."), "takes a mark"},
        Refusal{"below_the_mark", pickle("}(K\x01s."), "takes a value"},
        Refusal{"not_kept", pickle("h\x07."), "was not kept"},
        Refusal{"cut_off_text",
                pickle("X\xFF\xFF\xFF\x7F"
                       "ab."),
                "cut off"},
        Refusal{"cut_off_bytes", pickle("\x8e\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF."), "cut off"},
        Refusal{"unfinished_name", pickle("cos"), "cut off"},
        Refusal{"key_without_value", pickle("}(K\x01u."), "without a value"},
        Refusal{"recursive", pickle(recursive_list()), "no mapping"},
        Refusal{"recursive_mapping", pickle("}q\x01" + text("state_dict") + "h\x01s."), "holds no tensors"},
        Refusal{"many_mappings", pickle(many_mappings()), "again and again"},
        Refusal{"number", pickle("K\x01."), "no mapping"},
        Refusal{"tensor_under_a_number", archive_of(mapping("K\x01" + tensor({1}, {1}))), "no text"},
        Refusal{"not_utf8", archive_of(mapping(text("\xFF") + tensor({1}, {1}))), "UTF-8"},
        Refusal{"reserved", archive_of(mapping(text("__metadata__") + tensor({1}, {1}))), "keeps for itself"},
        Refusal{"persistent_id", pickle("K\x01Q."), "no storage"},
        Refusal{"tensor_of_numbers", pickle("ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x01))tR."), "makes a tensor"},
        Refusal{"parameter_of_a_number", pickle("ctorch._utils\n_rebuild_parameter\nK\x01\x85R."), "parameter"}));

INSTANTIATE_TEST_SUITE_P(
    Tensors, RefusedArchive,
    ::testing::Values(
        Refusal{"too_long", one({5}, {1}), "does not fit"}, Refusal{"offset", one({4}, {1}, 1), "does not fit"},
        Refusal{"negative_offset", one({1}, {1}, -1), "does not fit"},
        Refusal{"negative_size", one({-1}, {1}), "whole number"},
        Refusal{"negative_stride", one({2}, {-1}), "whole number"}, Refusal{"stride", one({2}, {4}), "does not fit"},
        Refusal{"overflow", one({kHuge, kHuge}, {kHuge, kHuge}), "does not fit"},
        Refusal{"empty_of_huge_sides", one({0, kHuge, kHuge}, {1, 1, 1}), "does not fit"},
        Refusal{"bytes_overflow", one({kHuge}, {1}), "does not fit"},
        Refusal{"offset_overflow", one({1}, {1}, kHuge), "does not fit"},
        Refusal{"expanded", one({kHuge, kHuge}, {0, 0}), "would take more"},
        Refusal{"expanded_to_gigabytes", one({1 << 30}, {0}), "would take more"},
        Refusal{"other_dimensions", one({2, 2}, {1}), "another number of strides"},
        Refusal{"storage_too_long", one({1}, {1}, 0, 5), "does not fit"},
        Refusal{"storage_negative", one({1}, {1}, 0, -4), "does not fit"},
        Refusal{"complex", archive_of(mapping(text("w") + tensor({1}, {1}, 0, 2, "ctorch\nComplexFloatStorage\n"))),
                "ComplexFloatStorage"},
        Refusal{"untyped", archive_of(mapping(text("w") + tensor({1}, {1}, 0, 16, "ctorch.storage\nUntypedStorage\n"))),
                "dtype that is not read"},
        Refusal{"no_storage", test::zip_of({{"a/data.pkl", kOne}}), "no storage"}));

INSTANTIATE_TEST_SUITE_P(
    Zip, RefusedArchive,
    ::testing::Values(
        Refusal{"compressed", archive_of(kOne, std::string(16, 's'), {.method = 8}), "is compressed"},
        Refusal{"encrypted", archive_of(kOne, std::string(16, 's'), {.flags = 1}), "is encrypted"},
        Refusal{"too_large", archive_of(kOne, std::string(16, 's'), {.extra_size = 1 << 20}), "beyond the file"},
        Refusal{"too_large_64", archive_of(kOne, std::string(16, 's'), {.extra_size = kHuge, .zip64 = true}), "beyond"},
        Refusal{"cut_off", archive_of(kOne).substr(0, archive_of(kOne).size() - 1), "cut off"},
        Refusal{"half", archive_of(kOne).substr(0, archive_of(kOne).size() / 2), "cut off"},
        Refusal{"bytes_in_front", "PK\x03\x04" + archive_of(kOne), "broken zip directory"},
        Refusal{"bytes_behind", archive_of(kOne) + "x", "cut off"},
        Refusal{"only_an_end", "PK\x03\x04" + test::zip_of({}), "did not write"},
        Refusal{"twice", test::zip_of({{"a/data.pkl", kOne}, {"a/data.pkl", kOne}}), "is there twice"},
        Refusal{"two_pickles", test::zip_of({{"a/data.pkl", kOne}, {"b/data.pkl", kOne}}), "two pickles"},
        Refusal{"no_pickle", test::zip_of({{"a/x", "y"}}), "no data.pkl"},
        Refusal{"program", test::zip_of({{"a/data.pkl", kOne}, {"a/constants.pkl", ""}}), "TorchScript"},
        Refusal{"byte_order", test::zip_of({{"a/data.pkl", kOne}, {"a/byteorder", "big"}}), "byte order"},
        Refusal{"old_pickle",
                "\x80\x02\x8a\x0al\xfc\x9c"
                "F\xf9 j\xa8P\x19.",
                "before PyTorch 1.6"},
        Refusal{"safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10), "--model in place of --pickle"},
        Refusal{"page", "<html>", "web page"}, Refusal{"nothing", "", "is empty"}));

}  // namespace
}  // namespace sdtune
