#include "train/dist/rank_store.h"

#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>

#include "model/base/error.h"

namespace sdtune::train {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBeat{500};
constexpr milliseconds kSilence{3000};  // a rank without a beat for this long is lost
constexpr milliseconds kLinger{5000};
constexpr milliseconds kPoll{100};
constexpr const char* kEnded = "ended";  // the last beat of a rank that ends in order

std::string key(const char* what, std::int64_t rank) {
  return std::string(what) + "/" + std::to_string(rank);
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown host";
}

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Port 0 lets the system choose; the choice is written back.
c10::intrusive_ptr<c10d::Store> open_store(RankEnv& env, bool server, milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env.master_port);
  options.isServer = server;
  options.waitWorkers = false;
  options.timeout = timeout;
  const std::string place = env.master_address + ":" + std::to_string(env.master_port);
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(env.master_address, options);
    env.master_port = store->getPort();
    const std::string prefix = "sdtune/" + env.run_id + "/" + std::to_string(env.attempt);
    return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
  } catch (const std::exception& error) {
    if (server) {
      throw ConfigError("MASTER_PORT", "rank 0 cannot listen on " + place + ": " + first_line(error),
                        "another program may use the port");
    }
    throw PeerLostError("rank 0", "does not answer on " + place + ": " + first_line(error),
                        "MASTER_ADDR and MASTER_PORT must name the machine of rank 0");
  }
}

}  // namespace

RankStore::RankStore(const RankEnv& env, milliseconds start_timeout, const std::string& config_hash) : env_(env) {
  store_ = open_store(env_, env.rank == 0 && !env.agent_store, start_timeout);
  heartbeat_ = open_store(env_, false, start_timeout);
  meet(start_timeout, config_hash);
  heart_ = std::jthread([this](const std::stop_token& stop) { beat_until_stopped(stop); });
}

RankStore::~RankStore() {
  if (!heart_.joinable()) return;
  heart_.request_stop();
  stopped_.notify_all();
  heart_.join();
  try {
    heartbeat_->set(key("alive", env_.rank), std::string(kEnded) + " " + std::to_string(progress_.load()));
  } catch (const std::exception&) {  // the store is gone, and so is everybody who would ask
  }
}

void RankStore::meet(milliseconds timeout, const std::string& config_hash) {
  heartbeat_->set(key("alive", env_.rank), std::string("0 0"));
  // One host twice under one rank would pass for two ranks, so each rank claims its number.
  if (store_->add(key("claim", env_.rank), 1) != 1) {
    throw ConfigError("RANK", "two processes are rank " + std::to_string(env_.rank));
  }
  store_->set(key("host", env_.rank), host_name());
  store_->set(key("config", env_.rank), config_hash);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string missing;
  for (std::int64_t rank = 0; rank < env_.world_size; ++rank) {
    const std::vector<std::string> keys{key("config", rank)};
    while (!store_->check(keys) && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(kPoll);
    if (!store_->check(keys)) missing += (missing.empty() ? "rank " : ", ") + std::to_string(rank);
  }
  if (!missing.empty()) {
    throw PeerLostError(missing, "did not start within " + std::to_string(timeout.count() / 1000) + " s",
                        "see --start-timeout and the output of that rank");
  }
  compare_configurations();
}

// Everybody reads all, and rank 0, whose end takes the store away, waits until they have.
void RankStore::compare_configurations() {
  std::vector<std::string> configurations;
  for (std::int64_t rank = 0; rank < env_.world_size; ++rank) {
    hosts_.push_back(text_of(store_->get(key("host", rank))));
    configurations.push_back(text_of(store_->get(key("config", rank))));
  }
  store_->add("compared", 1);
  wait_for_count("compared", env_.world_size);
  for (std::int64_t rank = 1; rank < env_.world_size; ++rank) {
    if (configurations[static_cast<std::size_t>(rank)] == configurations[0]) continue;
    throw ConfigError(name_of(rank), "has another configuration or another version of sdtune than " + name_of(0));
  }
}

void RankStore::wait_for_count(const std::string& counter, std::int64_t count) {
  if (env_.rank != 0 || env_.agent_store) return;
  const auto deadline = std::chrono::steady_clock::now() + kLinger;
  while (store_->add(counter, 0) < count && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPoll);
  }
}

void RankStore::beat_until_stopped(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (std::int64_t beat = 1; !stop.stop_requested(); ++beat) {
    try {
      heartbeat_->set(key("alive", env_.rank), std::to_string(beat) + " " + std::to_string(progress_.load()));
    } catch (const std::exception&) {
      return;  // the store is gone; the next collective fails and find_lost() says so
    }
    stopped_.wait_for(lock, stop, kBeat, [] { return false; });
  }
}

bool RankStore::wait_for_all(milliseconds silence) {
  const std::string place = "arrival" + std::to_string(waits_++);
  std::vector<std::string> arrivals;
  for (std::int64_t rank = 0; rank < env_.world_size; ++rank) arrivals.push_back(key(place.c_str(), rank));
  store_->set(arrivals[static_cast<std::size_t>(env_.rank)], std::string("here"));
  std::vector<LastSeen> seen(arrivals.size());
  for (std::int64_t poll = 0; !store_->check(arrivals); ++poll) {
    std::this_thread::sleep_for(kPoll);
    if (poll % (kBeat / kPoll) != 0) continue;
    if (store_->check({"lost"})) return false;
    for (std::size_t rank = 0; rank < arrivals.size(); ++rank) {
      if (store_->check({arrivals[rank]})) continue;
      if (is_gone(static_cast<std::int64_t>(rank), seen[rank], silence)) return false;
    }
  }
  return true;
}

// `last` is what the call before saw.
bool RankStore::is_gone(std::int64_t rank, LastSeen& last, milliseconds silence) {
  const auto now = std::chrono::steady_clock::now();
  const std::string alive = text_of(store_->get(key("alive", rank)));
  if (alive != last.alive) last = {alive, now};
  return alive.starts_with(kEnded) || now - last.since > std::max(silence, kSilence);
}

std::string RankStore::name_of(std::int64_t rank) const {
  return "rank " + std::to_string(rank) + " (" + hosts_.at(static_cast<std::size_t>(rank)) + ")";
}

std::vector<RankStore::Beat> RankStore::read_beats() {
  std::vector<Beat> beats;
  for (std::int64_t rank = 0; rank < env_.world_size; ++rank) {
    const std::string text = text_of(store_->get(key("alive", rank)));
    beats.push_back({text, std::stoll(text.substr(text.find(' ') + 1))});
  }
  return beats;
}

// The ranks whose heart does not beat; if all do, those that have begun fewer collectives than the others.
std::string RankStore::silent_or_behind() {
  const std::vector<Beat> before = read_beats();
  std::this_thread::sleep_for(kSilence);
  if (store_->check({"lost"})) return text_of(store_->get("lost"));
  const std::vector<Beat> after = read_beats();
  std::int64_t most = 0;
  for (const Beat& beat : after) most = std::max(most, beat.progress);
  std::string silent;
  std::string behind;
  for (std::size_t rank = 0; rank < after.size(); ++rank) {
    const std::string name = name_of(static_cast<std::int64_t>(rank));
    if (before[rank].alive == after[rank].alive) silent += (silent.empty() ? "" : ", ") + name;
    if (after[rank].progress < most) behind += (behind.empty() ? "" : ", ") + name;
  }
  return silent.empty() ? behind : silent;
}

std::string RankStore::find_lost() {
  try {
    // Whoever finds out first says it for all: later, ranks that ended because of it would seem lost themselves.
    std::string lost = store_->check({"lost"}) ? text_of(store_->get("lost")) : silent_or_behind();
    if (!lost.empty()) lost = store_->compareSet("lost", "", lost);
    store_->add("informed", 1);
    const std::int64_t gone = lost.empty() ? 0 : 1 + std::count(lost.begin(), lost.end(), ',');
    wait_for_count("informed", env_.world_size - gone);
    return lost.empty() ? "a rank that still answers" : lost;
  } catch (const std::exception&) {
    return env_.agent_store ? "torchrun's agent (" + env_.master_address + ")" : name_of(0);
  }
}

}  // namespace sdtune::train
