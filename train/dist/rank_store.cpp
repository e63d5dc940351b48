#include "train/dist/rank_store.h"

#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <sstream>
#include <thread>

#include "model/base/error.h"
#include "train/dist/call_thread.h"

namespace sdtune::train {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStoreLinger{5000};
constexpr milliseconds kPoll{100};
constexpr milliseconds kConnecting{2000};
constexpr std::size_t kMostLines = 3;  // of a configuration that differs

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
      if (std::chrono::steady_clock::now() < deadline) continue;
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

void announce(c10d::Store& store, const RankEnv& env, const std::string& configuration) {
  store.set(key("alive", env.rank), std::string("0 0 0"));
  // One host twice under one rank would pass for two ranks, so each rank claims its number.
  if (store.add(key("claim", env.rank), 1) != 1) {
    throw ConfigError("RANK", "two processes are rank " + std::to_string(env.rank));
  }
  store.set(key("host", env.rank), host_name());
  store.set(key("config", env.rank), configuration);
}

// Until `ranks` ranks have counted under `what`: the end of rank 0 takes the store away.
void wait_for_others(c10d::Store& store, const RankEnv& env, const std::string& what, std::int64_t ranks) {
  const auto deadline = std::chrono::steady_clock::now() + kStoreLinger;
  while (env.rank == 0 && !env.agent_store && store.add(what, 0) < ranks &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPoll);
  }
}

// Whoever finds out first that ranks are missing says it for all, who began to wait at other times.
void wait_for_ranks(c10d::Store& store, const RankEnv& env, milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto gives_up = [&] { return std::chrono::steady_clock::now() >= deadline || store.check({"missing"}); };
  std::string missing;
  std::int64_t here = 0;
  for (std::int64_t rank = 0; rank < env.world_size; ++rank) {
    const std::vector<std::string> keys{key("config", rank)};
    while (!store.check(keys) && !gives_up()) std::this_thread::sleep_for(kPoll);
    if (store.check(keys)) {
      ++here;
    } else {
      missing += (missing.empty() ? "rank " : ", ") + std::to_string(rank);
    }
  }
  if (missing.empty()) return;
  missing = store.compareSet("missing", std::string(), missing);
  store.add("know of it", 1);
  wait_for_others(store, env, "know of it", here);
  throw PeerLostError(missing, "did not start within " + std::to_string(timeout.count() / 1000) + " s",
                      "see --start-timeout and the output of that rank");
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

}  // namespace

RankStore meet_ranks(const RankEnv& env, milliseconds start_timeout, const std::string& configuration) {
  // The store's calls have no timeout of their own, and rank 0 may be stopped while it holds the store.
  const auto met = std::make_shared<RankStore>();
  CallThread thread;
  thread.run(
      [met, joined = env, start_timeout, configuration]() mutable {
        met->store = open_store(joined, joined.rank == 0 && !joined.agent_store, start_timeout);
        met->heartbeat = open_store(joined, false, start_timeout);
        announce(*met->store, joined, configuration);
        wait_for_ranks(*met->store, joined, start_timeout);
        met->hosts = compare_configurations(*met->store, joined);
      },
      give_up_after(2 * start_timeout + kStoreLinger, "rank 0", "opened the store and does not answer any more"));
  return *met;
}

}  // namespace sdtune::train
