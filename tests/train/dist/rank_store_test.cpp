// The ways in which ranks fail to meet.
#include "train/dist/rank_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <thread>

#include "model/base/error.h"
#include "tests/support/gloo_ranks.h"
#include "train/dist/rank_failure.h"
#include "train/dist/stop_request.h"

namespace sdtune::train {
namespace {

using namespace std::chrono_literals;
using test::env_of;
using test::free_port;

// The store of ranks that meet, in the hands of the test.
c10::intrusive_ptr<c10d::Store> hold_store(std::int64_t port) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::PrefixStore>("sdtune//0", c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options));
}

// What the meeting of rank 1 of 3 throws: exit code and line.
std::string meet(std::int64_t port, const StopFlag* stop = nullptr) {
  try {
    meet_ranks(env_of(1, 3, port), {60s, "same", stop});
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.problems().front().line();
  } catch (const StopRequest& request) {
    return "stopped by " + std::to_string(request.signal);
  }
  return "";
}

TEST(MeetRanks, ARankThatIsTakenByADeadProcessIsLost) {
  const std::int64_t port = free_port();
  const auto store = hold_store(port);
  store->add("claim/1", 1);
  store->set("alive/1", std::string("17 4 0"));
  store->set("host/1", std::string("gone"));
  EXPECT_THAT(meet(port), testing::StartsWith("138 rank 1 (gone): has joined these ranks before"));
  EXPECT_EQ(store->get_to_str("lost"), "rank 1 (gone)") << "the others wait for peer_timeout";
  EXPECT_EQ(store->get_to_str("alive/1"), "17 4 0") << "it gave the dead one a beat";
}

TEST(MeetRanks, ARankThatIsTakenByALivingProcessIsAMistake) {
  const std::int64_t port = free_port();
  const auto store = hold_store(port);
  store->add("claim/1", 1);
  std::atomic<bool> over = false;
  std::thread heart([&] {
    for (int beat = 0; !over; ++beat) {
      store->set("alive/1", std::to_string(beat) + " 0 0");
      std::this_thread::sleep_for(500ms);
    }
  });
  EXPECT_EQ(meet(port), "2 RANK: two processes are rank 1");
  over = true;
  heart.join();
  EXPECT_FALSE(store->check({"lost"}));
}

TEST(FailureBeforeTheMeeting, IsToldUnlessAnotherProcessOfTheRankLives) {
  const std::int64_t port = free_port();
  const auto store = hold_store(port);
  const auto say = [port] {
    say_failure_before_meeting(env_of(1, 3, port), ConfigError("images", "is empty"), StopFlag());
  };
  std::atomic<bool> over = false;
  store->add("claim/1", 1);
  std::thread heart([&] {
    for (int beat = 0; !over; ++beat) {
      store->set("alive/1", std::to_string(beat) + " 0 0");
      std::this_thread::sleep_for(500ms);
    }
  });
  say();
  over = true;
  heart.join();
  EXPECT_FALSE(store->check({"failed"})) << "it ends a run that goes on";
  say();
  EXPECT_THAT(store->get_to_str("failed"), testing::HasSubstr("images: is empty"));
}

TEST(MeetRanks, ARankThatWaitsShowsThatItLives) {
  const std::int64_t port = free_port();
  const auto store = hold_store(port);
  StopFlag stop;
  auto met = std::async(std::launch::async, [&] { return meet(port, &stop); });
  store->wait({"alive/1"}, 10s);
  const std::string before = store->get_to_str("alive/1");
  std::this_thread::sleep_for(1s);
  EXPECT_NE(store->get_to_str("alive/1"), before);
  stop.request(SIGTERM);
  ASSERT_EQ(met.wait_for(5s), std::future_status::ready);
  EXPECT_EQ(met.get(), "stopped by 15");
  EXPECT_THAT(store->get_to_str("lost"), testing::StartsWith("rank 1 ("));
}

TEST(MeetRanks, ASignalEndsTheWaitForAConnection) {
  StopFlag stop;
  stop.request(SIGINT);
  EXPECT_EQ(meet(free_port(), &stop), "stopped by 2");
}

TEST(MeetRanks, TheFailureOfAnotherIsTheEndOfAll) {
  const std::int64_t port = free_port();
  const auto store = hold_store(port);
  store->set("failed", RankFailure{ExitCode::kStorage, "rank 0 (first)", "run: no room"}.text());
  EXPECT_EQ(meet(port), "5 rank 0 (first): failed: run: no room");
}

TEST(MeetRanks, AStoreThatBreaksOffIsALostRank) {
  const std::int64_t port = free_port();
  auto store = hold_store(port);
  auto met = std::async(std::launch::async, [&] { return meet(port); });
  store->wait({"alive/1"}, 10s);
  store.reset();
  EXPECT_THAT(met.get(), testing::StartsWith("138 rank 0: on 127.0.0.1 was lost before all ranks had met"));
}

}  // namespace
}  // namespace sdtune::train
