#include "train/dist/heartbeat.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <utility>

#include "train/dist/beat_reader.h"

namespace sdtune::train {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kBeat{500};
constexpr milliseconds kQuickBeat{50};     // while this rank waits for all others
constexpr milliseconds kSilence{3000};     // without a beat for this long a rank is lost, after a collective failed
constexpr milliseconds kEndedGrace{2000};  // a rank that ended in order may have sent what is waited for
constexpr milliseconds kLinger{5000};
constexpr milliseconds kBoardLook{100};
constexpr const char* kEnded = "ended";  // the last beat of a rank that ends in order

// What the store has under this key, where the first rank that says something counts: `known` once that was read,
// `mine` where this rank is the first.
std::string said_by_a_rank(c10d::Store& store, const char* key, const std::string& known, const std::string& mine) {
  if (!known.empty()) return known;
  if (!mine.empty()) return store.compareSet(key, std::string(), mine);
  return store.check({key}) ? store.get_to_str(key) : "";
}

}  // namespace

// What a rank shows: "<beat or ended> <collectives begun> <calls of wait_for_all>".
struct Heartbeat::Seen {
  std::string alive;
  std::int64_t progress = 0;
  std::int64_t waits = 0;
  Clock::time_point since = Clock::now();  // of the last change of `alive`

  bool ended() const { return alive == kEnded; }
  void read(const std::string& text, Clock::time_point now) {
    const std::string before = alive;
    std::istringstream(text) >> alive >> progress >> waits;
    if (alive != before) since = now;
  }
};

// Between the thread and everybody else.
struct Heartbeat::Board {
  std::mutex mutex;
  std::condition_variable changed;
  // For the thread to say:
  std::int64_t progress = 0;
  std::int64_t waits = 0;
  std::string found_lost;   // by this rank
  std::string own_failure;  // in words for the others
  bool hurry = false;       // something was changed that the others should see at once
  bool is_waiting = false;
  bool ends = false;
  bool stop = false;
  // What it has seen:
  std::vector<Seen> ranks;
  std::string lost;           // on which all agree
  std::string failure;        // the first that a rank said
  std::int64_t informed = 0;  // ranks that know of it
  Clock::time_point answered = Clock::now();
  bool store_is_gone = false;
  bool finished = false;
};

Heartbeat::Heartbeat(RankStore met, const RankEnv& env)
    : env_(env), met_(std::move(met)), board_(std::make_shared<Board>()) {
  board_->ranks.resize(met_.hosts.size());
  thread_ = std::thread([board = board_, store = met_.heartbeat, rank = env.rank] { beat(board, store, rank); });
}

Heartbeat::~Heartbeat() {
  std::unique_lock lock(board_->mutex);
  board_->ends = board_->hurry = true;
  board_->changed.notify_all();
  if (holds_store() && board_->lost.empty()) {
    board_->is_waiting = true;
    board_->changed.wait_for(lock, kLinger, [&] {
      const bool all_ended =
          std::all_of(board_->ranks.begin(), board_->ranks.end(), [](const Seen& seen) { return seen.ended(); });
      return board_->finished || all_ended;
    });
  }
  board_->stop = true;
  board_->changed.notify_all();
  const bool answers = Clock::now() - board_->answered <= kSilence;
  const bool finished = board_->changed.wait_for(lock, answers ? kLinger : kBeat, [&] { return board_->finished; });
  lock.unlock();
  if (finished) {
    thread_.join();
  } else {
    thread_.detach();  // the store does not answer, and nothing ends this call
  }
}

void Heartbeat::beat(const std::shared_ptr<Board>& board, const c10::intrusive_ptr<c10d::Store>& store,
                     std::int64_t rank) {
  std::unique_lock lock(board->mutex);
  BeatReader reader(rank, std::ssize(board->ranks));
  bool counted = false;
  for (std::int64_t beat = 1; !board->store_is_gone; ++beat) {
    const bool last = board->stop;
    const std::string alive = board->ends ? kEnded : std::to_string(beat);
    const std::string text = alive + " " + std::to_string(board->progress) + " " + std::to_string(board->waits);
    const std::string found = board->found_lost;
    const std::string own_failure = board->own_failure;
    std::string lost = board->lost;
    std::string failure = board->failure;
    board->hurry = false;
    lock.unlock();
    std::vector<std::string> texts;
    std::int64_t informed = 0;
    bool is_gone = false;
    try {
      store->set(beat_key(rank), text);
      failure = said_by_a_rank(*store, kFailedKey, failure, own_failure);
      lost = said_by_a_rank(*store, kLostKey, lost, found);
      if (!lost.empty()) informed = store->add("informed", std::exchange(counted, true) ? 0 : 1);
      texts = reader.read(*store);
    } catch (const std::exception&) {
      is_gone = true;
    }
    lock.lock();
    board->store_is_gone = is_gone;
    if (!is_gone) {
      board->answered = Clock::now();
      board->lost = lost;
      board->failure = failure;
      board->informed = informed;
    }
    for (std::size_t i = 0; i < texts.size(); ++i) board->ranks[i].read(texts[i], board->answered);
    board->changed.notify_all();
    if (last) break;
    board->changed.wait_for(lock, board->is_waiting ? kQuickBeat : kBeat, [&] { return board->hurry || board->stop; });
  }
  board->finished = true;
  board->changed.notify_all();
}

void Heartbeat::note_progress() {
  const std::lock_guard lock(board_->mutex);
  ++board_->progress;
}

bool Heartbeat::wait_for_all(milliseconds silence) {
  const milliseconds limit = std::max(silence, kSilence);
  std::unique_lock lock(board_->mutex);
  const std::int64_t place = ++board_->waits;
  board_->hurry = board_->is_waiting = true;
  board_->changed.notify_all();
  bool all_here = false;
  while (true) {
    const auto is_missing = [&](const Seen& seen) { return seen.waits < place; };
    const auto is_lost = [&](const Seen& seen) {
      return is_missing(seen) && (seen.ended() || board_->answered - seen.since > limit);
    };
    const std::vector<Seen>& ranks = board_->ranks;
    all_here = std::none_of(ranks.begin(), ranks.end(), is_missing);
    if (all_here || !board_->lost.empty() || !board_->failure.empty() || board_->store_is_gone) break;
    if (Clock::now() - board_->answered > limit || std::any_of(ranks.begin(), ranks.end(), is_lost)) break;
    board_->changed.wait_for(lock, kBoardLook);
  }
  board_->is_waiting = false;
  return all_here;
}

std::string Heartbeat::gone(milliseconds silence) {
  const milliseconds limit = std::max(silence, kSilence);
  const std::lock_guard lock(board_->mutex);
  if (!board_->failure.empty()) return RankFailure::parse(board_->failure).who;
  if (!board_->lost.empty()) return board_->lost;
  if (Clock::now() - board_->answered > (board_->store_is_gone ? kEndedGrace : limit)) return holder();
  return silent_ranks(limit, kEndedGrace);
}

std::string Heartbeat::find_lost() {
  std::unique_lock lock(board_->mutex);
  const std::string found = blame_by_waiting(lock);
  if (!board_->failure.empty()) return RankFailure::parse(board_->failure).who;
  if (found.empty()) return "a rank that still answers";
  // Whoever finds out first says it for all: later, ranks that ended because of it would seem lost themselves.
  board_->found_lost = found;
  board_->hurry = board_->is_waiting = true;
  board_->changed.notify_all();
  board_->changed.wait_for(lock, kSilence, [&] { return !board_->lost.empty() || board_->finished; });
  const std::string lost = board_->lost.empty() ? found : board_->lost;
  // The end of this process takes the store away, so it stays until all know whose heart beats: a rank that is blocked
  // in a collective is lost and asks nevertheless.
  if (holds_store()) {
    board_->changed.wait_for(lock, kLinger, [&] { return board_->informed >= living_ranks() || board_->finished; });
  }
  return lost;
}

// The ranks whose heart does not beat; if all do for a while, those that have begun fewer collectives than the others.
std::string Heartbeat::blame_by_waiting(std::unique_lock<std::mutex>& lock) const {
  const auto deadline = Clock::now() + kSilence + 2 * kBeat;
  while (true) {
    if (!board_->lost.empty() || !board_->failure.empty()) return board_->lost;
    if (board_->store_is_gone || Clock::now() - board_->answered > kSilence) return holder();
    const std::string silent = silent_ranks(kSilence, milliseconds(0));
    if (!silent.empty()) return silent;
    if (Clock::now() > deadline) break;
    board_->changed.wait_for(lock, kBoardLook);
  }
  std::int64_t most = 0;
  for (const Seen& seen : board_->ranks) most = std::max(most, seen.progress);
  std::vector<std::int64_t> behind;
  for (std::size_t rank = 0; rank < board_->ranks.size(); ++rank) {
    if (board_->ranks[rank].progress < most) behind.push_back(static_cast<std::int64_t>(rank));
  }
  return names(behind);
}

// Against the store's last answer: where it does not answer, no beats are seen. `ended`: how long ago a rank must
// have ended.
std::string Heartbeat::silent_ranks(milliseconds silence, milliseconds ended) const {
  std::vector<std::int64_t> silent;
  for (std::size_t rank = 0; rank < board_->ranks.size(); ++rank) {
    const Seen& seen = board_->ranks[rank];
    const auto age = board_->answered - seen.since;
    const bool is_other = static_cast<std::int64_t>(rank) != env_.rank;
    if (is_other && age >= (seen.ended() ? ended : silence)) silent.push_back(static_cast<std::int64_t>(rank));
  }
  return names(silent);
}

std::int64_t Heartbeat::living_ranks() const {
  return std::count_if(board_->ranks.begin(), board_->ranks.end(),
                       [&](const Seen& seen) { return !seen.ended() && board_->answered - seen.since < kSilence; });
}

void Heartbeat::say_failure(const Error& error) {
  std::unique_lock lock(board_->mutex);
  board_->own_failure = RankFailure{error.code(), name_of(env_.rank), error.problems().front().line()}.text();
  board_->hurry = true;
  board_->changed.notify_all();
  board_->changed.wait_for(lock, kSilence, [&] { return !board_->failure.empty() || board_->finished; });
}

std::optional<RankFailure> Heartbeat::failure() {
  const std::lock_guard lock(board_->mutex);
  if (board_->failure.empty()) return std::nullopt;
  return RankFailure::parse(board_->failure);
}

std::string Heartbeat::holder() const {
  return env_.agent_store ? "torchrun's agent (" + env_.master_address + ")" : name_of(0);
}

std::string Heartbeat::names(const std::vector<std::int64_t>& ranks) const {
  std::string text;
  for (const std::int64_t rank : ranks) text += (text.empty() ? "" : ", ") + name_of(rank);
  return text;
}

std::string Heartbeat::name_of(std::int64_t rank) const {
  return "rank " + std::to_string(rank) + " (" + met_.hosts.at(static_cast<std::size_t>(rank)) + ")";
}

}  // namespace sdtune::train
