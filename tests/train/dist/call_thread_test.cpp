#include "train/dist/call_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

using namespace std::chrono_literals;

const auto kPatient = [] {};

TEST(CallThread, RunsOnOneThreadAndThrowsWhatTheCallThrows) {
  CallThread thread;
  std::thread::id first, second;
  thread.run([&] { first = std::this_thread::get_id(); }, kPatient);
  thread.run([&] { second = std::this_thread::get_id(); }, kPatient);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_THROW(thread.run([] { throw std::out_of_range("x"); }, kPatient), std::out_of_range);
  thread.run([&] { second = std::thread::id(); }, kPatient);
  EXPECT_EQ(second, std::thread::id());
}

TEST(CallThread, GivesUpACallThatHangsAndServesTheNext) {
  const auto gate = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  bool ran = false;
  {
    CallThread thread;
    const auto hang = [gate, ended] {
      gate->get_future().wait();
      ended->set_value();
    };
    EXPECT_THROW(thread.run(hang, give_up_after(50ms, "rank 0", "does not answer")), PeerLostError);
    thread.run([&] { ran = true; }, kPatient);
  }  // the destructor does not wait for the first call
  EXPECT_TRUE(ran);
  gate->set_value();
  EXPECT_EQ(ended->get_future().wait_for(60s), std::future_status::ready);
}

}  // namespace
}  // namespace sdtune::train
