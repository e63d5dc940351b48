#include "train/dist/rank_store.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

#include "model/base/error.h"
#include "train/dist/beat_reader.h"
#include "train/dist/call_thread.h"
#include "train/dist/host_name.h"
#include "train/dist/rank_failure.h"
#include "train/dist/stop_request.h"

namespace sdtune::train {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStoreLinger{5000};
constexpr milliseconds kPoll{100};
constexpr milliseconds kConnecting{2000};
constexpr milliseconds kClaimWatch{6000};  // a heart beats every half second, and more often before the ranks have met
constexpr milliseconds kTimeToTell{1000};
constexpr milliseconds kTimeToFail{10000};      // for the others to come and hear of a failure
constexpr const char* kToldKey = "told";        // the number of ranks that know of it
constexpr const char* kMissingKey = "missing";  // the ranks that did not come
constexpr std::size_t kMostLines = 3;           // of a configuration that differs

std::string key(const char* what, std::int64_t rank) {
  return std::string(what) + "/" + std::to_string(rank);
}

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

std::string place_of(const RankEnv& env) {
  return env.master_address + ":" + std::to_string(env.master_port);
}

// A connection, or the store itself where port 0 lets the system choose.
c10::intrusive_ptr<c10d::TCPStore> make_store(const RankEnv& env, bool server, milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env.master_port);
  options.isServer = server;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(env.master_address, options);
}

c10::intrusive_ptr<c10d::TCPStore> serve_store(const RankEnv& env, milliseconds timeout) {
  try {
    return make_store(env, true, timeout);
  } catch (const std::exception& error) {
    throw ConfigError("MASTER_PORT", "rank 0 cannot listen on " + place_of(env) + ": " + first_line(error),
                      "another program may use the port");
  }
}

// Again and again: c10d takes twice the timeout that it is given.
c10::intrusive_ptr<c10d::TCPStore> connect_store(const RankEnv& env, milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    try {
      auto store = make_store(env, false, std::min(timeout, kConnecting));
      store->setTimeout(timeout);
      return store;
    } catch (const std::exception& error) {
      if (std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(kPoll);  // a name that cannot be resolved fails at once
        continue;
      }
      throw PeerLostError("rank 0",
                          "does not answer on " + place_of(env) + " within " + std::to_string(timeout.count() / 1000) +
                              " s: " + first_line(error),
                          "MASTER_ADDR and MASTER_PORT must name the machine of rank 0");
    }
  }
}

// The port that the system chose is written back.
c10::intrusive_ptr<c10d::Store> open_store(RankEnv& env, bool server, milliseconds timeout) {
  const auto store = server ? serve_store(env, timeout) : connect_store(env, timeout);
  env.master_port = store->getPort();
  const std::string prefix = "sdtune/" + env.run_id + "/" + std::to_string(env.attempt);
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
}

// Says that this rank lives, in the form of a heartbeat, which has not begun.
void beat(c10d::Store& store, const RankEnv& env, std::int64_t count) {
  store.set(beat_key(env.rank), "m" + std::to_string(count) + " 0 0");
}

std::string read_or_nothing(c10d::Store& store, const std::string& name) {
  return store.check({name}) ? store.get_to_str(name) : "";
}

void say_lost(c10d::Store& store, const std::string& who) {
  store.compareSet(kLostKey, std::string(), who);
}

// Whether the process that has claimed this rank beats; else it has ended.
bool claimer_lives(c10d::Store& store, const RankEnv& env) {
  const std::string name = beat_key(env.rank);
  const std::string before = read_or_nothing(store, name);
  const auto deadline = std::chrono::steady_clock::now() + kClaimWatch;
  while (std::chrono::steady_clock::now() < deadline) {
    const std::string now = read_or_nothing(store, name);
    if (now != before && !now.starts_with("ended")) return true;
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

// One that stays away while a rank is claimed twice.
[[noreturn]] void refuse_claim(c10d::Store& store, const RankEnv& env) {
  if (claimer_lives(store, env)) throw ConfigError("RANK", "two processes are rank " + std::to_string(env.rank));
  const std::string host = read_or_nothing(store, key("host", env.rank));
  const std::string who = "rank " + std::to_string(env.rank) + " (" + (host.empty() ? "unknown host" : host) + ")";
  say_lost(store, who);
  throw PeerLostError(who, "has joined these ranks before this process did, and shows no life",
                      "all of them end and can be started again");
}

void announce(c10d::Store& store, const RankEnv& env, const std::string& configuration) {
  // One host twice under one rank would pass for two ranks, so each rank claims its number. Only then it writes: what
  // it wrote before would pass for a beat of the one that has the number.
  if (store.add(key("claim", env.rank), 1) != 1) refuse_claim(store, env);
  beat(store, env, 0);
  store.set(key("host", env.rank), host_name());
  store.set(key("config", env.rank), configuration);
}

// Throws what ends the ranks before they have met.
void look_for_an_end(c10d::Store& store, const RankEnv& env, const StopFlag* stop) {
  if (const std::string failed = read_or_nothing(store, kFailedKey); !failed.empty()) {
    store.add(kToldKey, 1);
    throw RankFailure::parse(failed).error();
  }
  if (const std::string lost = read_or_nothing(store, kLostKey); !lost.empty()) {
    throw PeerLostError(lost, "was lost before all ranks had met");
  }
  if (stop == nullptr || stop->signal() == 0) return;
  say_lost(store, "rank " + std::to_string(env.rank) + " (" + host_name() + ")");
  stop_if_requested(*stop);
}

// Until `ranks` ranks have counted under `what`: the end of rank 0 takes the store away.
void wait_for_others(c10d::Store& store, const RankEnv& env, const std::string& what, std::int64_t ranks,
                     milliseconds longest = kStoreLinger, const StopFlag* stop = nullptr) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (env.rank == 0 && !env.agent_store && (stop == nullptr || stop->signal() == 0) && store.add(what, 0) < ranks &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPoll);
  }
}

// Whoever finds out first that ranks are missing says it for all, who began to wait at other times.
void refuse_missing(c10d::Store& store, const RankEnv& env, const MeetingRules& rules) {
  std::string missing;
  std::int64_t here = 0;
  for (std::int64_t rank = 0; rank < env.world_size; ++rank) {
    if (store.check({key("config", rank)})) {
      ++here;
    } else {
      missing += (missing.empty() ? "rank " : ", ") + std::to_string(rank);
    }
  }
  if (missing.empty()) return;
  missing = store.compareSet(kMissingKey, std::string(), missing);
  store.add(kToldKey, 1);
  wait_for_others(store, env, kToldKey, here);
  throw PeerLostError(missing, "did not start within " + std::to_string(rules.start_timeout.count() / 1000) + " s",
                      "see --start-timeout and the output of that rank");
}

void wait_for_ranks(c10d::Store& store, const RankEnv& env, const MeetingRules& rules) {
  const auto deadline = std::chrono::steady_clock::now() + rules.start_timeout;
  std::int64_t here = 0;  // all ranks below
  for (std::int64_t count = 1; here < env.world_size; ++count) {
    while (here < env.world_size && store.check({key("config", here)})) ++here;
    if (here == env.world_size) return;
    if (std::chrono::steady_clock::now() >= deadline || store.check({kMissingKey})) break;
    look_for_an_end(store, env, rules.stop);
    beat(store, env, count);
    std::this_thread::sleep_for(kPoll);
  }
  refuse_missing(store, env, rules);
}

// Of a configuration: where a value came from does not matter here.
std::string without_comment(const std::string& line) {
  return line.substr(0, line.find("  #"));
}

// The first lines of one text that the other has otherwise, as "line instead of line".
std::string different_lines(const std::string& mine, const std::string& others) {
  std::istringstream left(mine), right(others);
  std::string text, one, other;
  for (std::size_t found = 0; found < kMostLines;) {
    const bool has_one = static_cast<bool>(std::getline(left, one));
    const bool has_other = static_cast<bool>(std::getline(right, other));
    if (!has_one || !has_other) break;
    if (one == other) continue;
    text += (found++ == 0 ? ": " : "; ") + without_comment(one) + " instead of " + without_comment(other);
  }
  return text;
}

// Everybody reads all, and rank 0, whose end takes the store away, waits until they have.
std::vector<std::string> compare_configurations(c10d::Store& store, const RankEnv& env) {
  std::vector<std::string> hosts, configurations;
  for (std::int64_t rank = 0; rank < env.world_size; ++rank) {
    hosts.push_back(text_of(store.get(key("host", rank))));
    configurations.push_back(text_of(store.get(key("config", rank))));
  }
  store.add("compared", 1);
  wait_for_others(store, env, "compared", env.world_size);
  for (std::size_t rank = 1; rank < hosts.size(); ++rank) {
    if (configurations[rank] == configurations[0]) continue;
    throw ConfigError("rank " + std::to_string(rank) + " (" + hosts[rank] + ")",
                      "has another configuration or another version of sdtune than rank 0 (" + hosts[0] + ")" +
                          different_lines(configurations[rank], configurations[0]));
  }
  return hosts;
}

// The rank that holds the store stays until the others know, since its end takes the store away. A second process of a
// rank that lives, a command that was typed twice for example, has no part in what the ranks do.
void fail_at_meeting(c10d::Store& store, const RankEnv& env, const std::string& failure, const StopFlag& stop) {
  if (store.check({key("claim", env.rank)}) && claimer_lives(store, env)) return;
  store.compareSet(kFailedKey, std::string(), failure);
  store.add(kToldKey, 1);
  wait_for_others(store, env, kToldKey, env.world_size, kTimeToFail, &stop);
}

// A store that breaks off is a lost rank: the one that holds it.
void meet_over(RankStore& met, const RankEnv& env, const MeetingRules& rules) {
  try {
    announce(*met.store, env, rules.configuration);
    wait_for_ranks(*met.store, env, rules);
    met.hosts = compare_configurations(*met.store, env);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw PeerLostError(env.agent_store ? "torchrun's agent" : "rank 0",
                        "on " + env.master_address + " was lost before all ranks had met: " + first_line(error));
  }
}

}  // namespace

void say_failure_before_meeting(const RankEnv& env, const Error& error, const StopFlag& stop) {
  if (env.world_size == 1 || !ends_all_ranks(error)) return;
  const std::string who = "rank " + std::to_string(env.rank) + " (" + host_name() + ")";
  const std::string failure = RankFailure{error.code(), who, error.problems().front().line()}.text();
  const auto asked = std::make_shared<StopFlag>();  // the thread's own
  const std::function<void()> give_up = give_up_after(kTimeToFail + kTimeToTell, "", "");
  CallThread thread;
  try {
    thread.run(
        [joined = env, failure, asked]() mutable {
          const auto store = open_store(joined, joined.rank == 0 && !joined.agent_store, kTimeToFail);
          fail_at_meeting(*store, joined, failure, *asked);
        },
        [&] {
          give_up();
          if (stop.signal() == 0) return;
          asked->request(stop.signal());
          if (env.rank != 0) stop_if_requested(stop);
        });
  } catch (const StopRequest&) {     // the failure itself is on its way to the user
  } catch (const std::exception&) {  // no rank can be told
  }
}

RankStore meet_ranks(const RankEnv& env, const MeetingRules& rules) {
  // The store's calls have no timeout of their own, and rank 0 may be stopped while it holds the store.
  const auto met = std::make_shared<RankStore>();
  const std::function<void()> give_up =
      give_up_after(2 * rules.start_timeout + kStoreLinger, "rank 0", "opened the store and does not answer any more");
  const auto stop = std::make_shared<StopFlag>();  // the thread's own, since it may be left to itself
  std::optional<std::chrono::steady_clock::time_point> asked;
  CallThread thread;
  thread.run(
      [met, joined = env, of_thread = MeetingRules{rules.start_timeout, rules.configuration, stop.get()},
       stop]() mutable {
        met->store = open_store(joined, joined.rank == 0 && !joined.agent_store, of_thread.start_timeout);
        met->heartbeat = open_store(joined, false, of_thread.start_timeout);
        meet_over(*met, joined, of_thread);
      },
      [&] {
        give_up();
        if (rules.stop == nullptr || rules.stop->signal() == 0) return;
        stop->request(rules.stop->signal());
        if (!asked) asked = std::chrono::steady_clock::now();
        // The thread sees it too, and tells the others, unless it waits for a connection.
        if (std::chrono::steady_clock::now() - *asked > kTimeToTell) stop_if_requested(*rules.stop);
      });
  return *met;
}

}  // namespace sdtune::train
