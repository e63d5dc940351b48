#include "train/dist/collectives.h"

#include <ATen/ThreadLocalState.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "model/base/error.h"
#include "model/core/out_of_memory.h"

namespace sdtune::train {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kFirstPause{20};
constexpr std::chrono::microseconds kLongestPause{1000};
constexpr std::chrono::seconds kTimeToEnd{5};
constexpr std::size_t kMostWaits = 4096;  // kept between two calls of take_waits; a step has one a bucket
// Gloo sends to the address that a machine's own name stands for, which /etc/hosts of Debian makes 127.0.1.1: the ranks
// have met, all their hearts beat, and none reaches another.
constexpr const char* kUnreachable =
    ": where a machine's name stands for an address that the others do not reach (127.0.1.1), GLOO_SOCKET_IFNAME must "
    "name its network interface";

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The first line; of NCCL's errors also their reason, which stands below: "Last error:\nError while creating shared
// memory segment /dev/shm/nccl-...: No space left on device".
std::string cause_of_loss(const std::string& text) {
  static const std::string kMark = "\nLast error:";
  const std::size_t mark = text.find(kMark);
  const std::size_t at = mark == std::string::npos ? mark : text.find_first_not_of(" \n", mark + kMark.size());
  return at == std::string::npos ? first_line(text) : first_line(text) + ": " + first_line(text.substr(at));
}

// The stream of the calling thread, which another thread must take over; none on a CPU.
std::optional<c10::Stream> stream_of(const torch::Device& device) {
  if (device.is_cpu()) return std::nullopt;
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

Collectives::Collectives(const std::function<Backend()>& make, PeerWatch& peers, const CollectiveRules& rules)
    : peers_(peers), rules_(rules) {
  const auto made = std::make_shared<Backend>();
  const auto since = Clock::now();
  attempt("joining the ranks",
          [&] { caller_.run([made, make] { *made = make(); }, [&] { watch(since, kUnreachable); }); });
  backend_ = *made;
}

// A collective that never ends may block its backend's destructor, which so runs on a thread that can be left.
Collectives::~Collectives() {
  remembered_.clear();
  if (!lost_) return;
  try {
    caller_.run(
        [backend = std::exchange(backend_, {})]() mutable {
          backend->abort();
          backend.reset();
        },
        give_up_after(kTimeToEnd, "", ""));
  } catch (const std::exception&) {  // the loss is on its way to the user already
  }
}

void Collectives::attempt(const char* doing, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error&) {
    throw;
  } catch (const c10::AcceleratorError&) {  // of this rank's own device
    throw;
  } catch (const c10::Error& error) {
    if (model::is_out_of_memory(error)) throw;
    lose(doing, error.what_without_backtrace());
  } catch (const std::exception& error) {
    lose(doing, error.what());
  }
}

void Collectives::lose(const char* doing, const std::string& cause) {
  lost_ = true;
  const std::string when = step_ == 0 ? "before the first step" : "at step " + std::to_string(step_);
  const std::string lost = peers_.find_lost();
  if (const std::optional<RankFailure> failure = peers_.failure()) throw failure->error();
  throw PeerLostError(lost, "was lost " + when + " while " + doing, cause_of_loss(cause));
}

// Throws what attempt() takes for a loss.
void Collectives::watch(Clock::time_point start, const char* advice) const {
  if (Clock::now() - start > rules_.timeout) {
    throw std::runtime_error("no answer within " + std::to_string(rules_.timeout.count() / 1000) + " s" + advice);
  }
  const std::string gone = peers_.gone(rules_.timeout);
  if (!gone.empty()) throw std::runtime_error(gone + " has ended, or shows no life");
}

Collectives::Work Collectives::start(const char* doing, const std::function<Work(c10d::Backend&)>& call) {
  peers_.note_progress();
  const auto work = std::make_shared<Work>();
  const std::optional<c10::Stream> stream = stream_of(rules_.device);
  const at::ThreadLocalState state;  // with a profiler, which so sees what is sent
  const auto since = Clock::now();
  // NCCL connects at the first use of a way through the network, and waits there for the peers.
  attempt(doing, [&] {
    caller_.run(
        [work, call, stream, state, backend = backend_] {
          const at::ThreadLocalStateGuard same_state(state);
          const c10::OptionalStreamGuard same_stream(stream);
          *work = call(*backend);
        },
        [&] { watch(since); });
  });
  peers_.note_progress();  // so a rank whose call never returns is behind those whose call did
  return *work;
}

void Collectives::wait_until_over(c10d::Work& work) const {
  const auto since = Clock::now();
  auto pause = kFirstPause;
  while (!work.isCompleted()) {
    watch(since);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  if (const std::exception_ptr error = work.exception()) std::rethrow_exception(error);
}

void Collectives::remember_wait(model::Timestamp begin) {
  waits_.push_back({std::move(begin), model::Timestamp(rules_.device)});
  if (waits_.size() > kMostWaits) waits_.pop_front();
}

std::vector<CollectiveWait> Collectives::take_waits() {
  std::vector<CollectiveWait> waits(std::make_move_iterator(waits_.begin()), std::make_move_iterator(waits_.end()));
  waits_.clear();
  return waits;
}

void Collectives::finish(const char* doing, const Work& work) {
  model::Timestamp begin(rules_.device);
  attempt(doing, [&] {
    wait_until_over(*work);
    work->synchronize();
  });
  remember_wait(std::move(begin));
}

void Collectives::order(const char* doing, const Work& work) {
  if (!rules_.runs_ahead) return finish(doing, work);
  model::Timestamp begin(rules_.device);
  attempt(doing, [&] { work->synchronize(); });
  remember_wait(std::move(begin));
  // A Work of NCCL holds its tensors for as long as it lives, and all of one communicator run on one stream: the newest
  // of a step ends last, and finds the same errors, which are the communicator's.
  if (!remembered_.empty() && remembered_.back().step == step_) remembered_.pop_back();
  remembered_.push_back({doing, step_, work});
}

void Collectives::check_remembered() {
  std::vector<Remembered> kept;
  for (const Remembered& entry : remembered_) {
    attempt(entry.doing, [&] {
      if (entry.step < step_) return wait_until_over(*entry.work);
      if (!entry.work->isCompleted()) {
        watch(Clock::now());
        kept.push_back(entry);
      } else if (const std::exception_ptr error = entry.work->exception()) {
        std::rethrow_exception(error);
      }
    });
  }
  remembered_ = std::move(kept);
}

void Collectives::finish_remembered() {
  for (const Remembered& entry : remembered_) {
    attempt(entry.doing, [&] { wait_until_over(*entry.work); });
  }
  remembered_.clear();
}

}  // namespace sdtune::train
