// The watch and whoever reads what it saw are two threads; scripts/sanitize.sh runs these with the thread sanitizer.
// The clouds' services are in tests/python/test_preemption.py.
#include "train/rental/preemption_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace sdtune::train {
namespace {

using Answer = std::function<std::optional<PreemptionNotice>(int question, const std::atomic<bool>& cancelled)>;

// A service that answers as the test says, asked anew at once.
class Service : public PreemptionSource {
 public:
  Service(Answer answer, std::atomic<int>& questions) : answer_(std::move(answer)), questions_(questions) {}
  void probe(double, const std::atomic<bool>&) override {}
  std::optional<PreemptionNotice> ask(double, const std::atomic<bool>& cancelled) override {
    return answer_(++questions_, cancelled);
  }
  double grace() const override { return 30; }
  double interval() const override { return 0; }

 private:
  Answer answer_;
  std::atomic<int>& questions_;
};

class Watch : public testing::Test {
 protected:
  std::unique_ptr<PreemptionWatch> watch(Answer answer) {
    return std::make_unique<PreemptionWatch>(std::make_unique<Service>(std::move(answer), questions_), stop_);
  }
  static void wait_until(const std::function<bool()>& is_so) {
    while (!is_so()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  StopFlag stop_;
  std::atomic<int> questions_{0};
};

TEST_F(Watch, ANoticeIsThereOnceTheRunIsAskedToStop) {
  const auto watching = watch([](int question, const std::atomic<bool>&) -> std::optional<PreemptionNotice> {
    if (question < 5) return std::nullopt;
    return PreemptionNotice{"a cloud: stop"};
  });
  while (!stop_.requested().load()) EXPECT_TRUE(watching->take_failure().empty());
  EXPECT_EQ(watching->notice(), "a cloud: stop");
  EXPECT_EQ(stop_.signal(), kPreemption);
  EXPECT_EQ(questions_, 5);
}

TEST_F(Watch, AFailureIsToldOnceAndTheWatchGoesOn) {
  const auto watching = watch(
      [](int, const std::atomic<bool>&) -> std::optional<PreemptionNotice> { throw std::runtime_error("no answer"); });
  std::string told;
  wait_until([&] { return !(told = watching->take_failure()).empty(); });
  EXPECT_EQ(told, "no answer");
  const int before = questions_;
  wait_until([&] { return questions_ > before + 3; });
  EXPECT_EQ(watching->take_failure(), "");
  EXPECT_EQ(stop_.signal(), 0);
}

TEST_F(Watch, EndsDuringAQuestion) {
  auto watching = watch([](int, const std::atomic<bool>& cancelled) -> std::optional<PreemptionNotice> {
    while (!cancelled.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::nullopt;
  });
  wait_until([&] { return questions_ > 0; });
  watching.reset();
  EXPECT_EQ(questions_, 1);
  EXPECT_EQ(stop_.signal(), 0);
}

}  // namespace
}  // namespace sdtune::train
