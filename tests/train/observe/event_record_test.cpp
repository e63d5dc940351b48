#include "train/observe/event_record.h"

#include <gtest/gtest.h>

#include <string>

#include "train/observe/crc32c.h"

namespace sdtune::train {
namespace {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, appendix B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(EventRecord, FrameHoldsLengthMessageAndTwoChecksums) {
  const std::string frame = record_frame("hello");
  ASSERT_EQ(frame.size(), 8u + 4 + 5 + 4);
  EXPECT_EQ(frame.substr(0, 8), std::string("\x05\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(frame.substr(12, 5), "hello");
}

TEST(EventRecord, VarintsOfLargeSteps) {
  const std::string event = session_start_event(0.0, 300);
  // wall_time: key 0x09 and 8 bytes; step: key 0x10, 300 = 0xAC 0x02; session_log: key 0x3A, 2 bytes: status = START.
  EXPECT_EQ(event, std::string("\x09\0\0\0\0\0\0\0\0\x10\xAC\x02\x3A\x02\x08\x01", 16));
}

}  // namespace
}  // namespace sdtune::train
