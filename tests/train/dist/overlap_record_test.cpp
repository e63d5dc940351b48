#include "train/dist/overlap_record.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

OverlapRecord::Clock::time_point at(int milliseconds) {
  return OverlapRecord::Clock::time_point(std::chrono::milliseconds(1000 + milliseconds));
}

TEST(OverlapRecord, CountsBytesSentBeforeTheLastFifthOfBackward) {
  OverlapRecord record;
  record.note_gradient(at(0));
  record.note_sent(300, at(40));
  record.note_sent(500, at(80));  // just before the last fifth
  record.note_sent(100, at(81));
  record.note_gradient(at(100));
  record.note_sent(100, at(120));  // after backward
  EXPECT_DOUBLE_EQ(record.share().value(), 0.8);
}

TEST(OverlapRecord, IsOfTheNewestBackward) {
  OverlapRecord record;
  EXPECT_FALSE(record.share());
  record.note_gradient(at(0));
  record.note_sent(1, at(1));
  record.note_gradient(at(10));
  EXPECT_DOUBLE_EQ(record.share().value(), 1);
  record.clear();
  EXPECT_FALSE(record.share());
  record.note_gradient(at(20));
  record.note_gradient(at(30));
  record.note_sent(1, at(31));
  EXPECT_DOUBLE_EQ(record.share().value(), 0);
}

}  // namespace
}  // namespace sdtune::train
