#include "model/core/chunk_threads.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "model/core/tensor_memory.h"

namespace sdtune::model {
namespace {

constexpr std::int64_t kNoChunk = -1;
thread_local std::int64_t chunk_of_thread = kNoChunk;

// The chunks of one batch.
struct ChunkCall {
  ChunkCall(std::int64_t count, const std::function<void(std::int64_t)>& function)
      : chunks(count), compute(function), errors(static_cast<std::size_t>(count)), unfinished(count) {}

  std::int64_t chunks;
  const std::function<void(std::int64_t)>& compute;
  at::ThreadLocalState modes;  // of the caller, as the next one
  bool reuses_memory = TensorMemoryScope::is_active();
  std::vector<std::exception_ptr> errors;
  std::int64_t unfinished;
};

// Threads that wait between calls and live as long as the process. They are none of OpenMP's: oneDNN's gradients of
// convolutions wait for each other within a primitive, and in a parallel region there is only one of them.
class ChunkThreads {
 public:
  static ChunkThreads& instance() {
    static auto& threads = *new ChunkThreads;
    return threads;
  }

  void run(ChunkCall& call) {
    const std::lock_guard one_at_a_time(running_);
    std::unique_lock lock(mutex_);
    start(call.chunks, lock);
    call_ = &call;
    ++number_;
    changed_.notify_all();
    ended_.wait(lock, [&] { return call.unfinished == 0; });
    call_ = nullptr;
  }

 private:
  // What a thread says of its number of threads is also what later ones begin with, so this one says its own again.
  void start(std::int64_t count, std::unique_lock<std::mutex>& lock) {
    if (launched_ >= count) return;
    const int own_threads = at::get_num_threads();
    std::exception_ptr error;
    try {
      for (; launched_ < count; ++launched_) std::thread([this, index = launched_] { serve(index); }).detach();
    } catch (...) {
      error = std::current_exception();  // the system gave no more; those that it gave serve a later call
    }
    ended_.wait(lock, [&] { return started_ == launched_; });
    at::set_num_threads(own_threads);
    if (error) std::rethrow_exception(error);
  }

  void serve(std::int64_t index) {
    // A thread's first use of either sets it to the process's number; LibTorch and this program have one each.
    at::get_num_threads();
    at::internal::lazy_init_num_threads();
    at::set_num_threads(1);
    std::unique_lock lock(mutex_);
    std::uint64_t seen = number_;
    ++started_;
    ended_.notify_all();
    while (true) {
      changed_.wait(lock, [&] { return call_ != nullptr && number_ != seen; });
      seen = number_;
      ChunkCall& call = *call_;
      if (index >= call.chunks) continue;
      lock.unlock();
      compute(call, index);
      lock.lock();
      if (--call.unfinished == 0) ended_.notify_all();
    }
  }

  static void compute(ChunkCall& call, std::int64_t index) {
    const at::ThreadLocalStateGuard modes(call.modes);
    chunk_of_thread = index;
    try {
      std::optional<TensorMemoryScope> memory;
      if (call.reuses_memory) memory.emplace();
      call.compute(index);
    } catch (...) {
      call.errors[static_cast<std::size_t>(index)] = std::current_exception();
    }
    chunk_of_thread = kNoChunk;
  }

  std::mutex running_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_, ended_;
  ChunkCall* call_ = nullptr;
  std::uint64_t number_ = 0;
  std::int64_t launched_ = 0, started_ = 0;
};

}  // namespace

std::int64_t chunk_count(std::int64_t samples, torch::Device device) {
  const std::int64_t threads = at::get_num_threads();
  const bool is_outer = chunk_of_thread == kNoChunk && !at::in_parallel_region();
  return device.is_cpu() && samples >= threads && is_outer ? threads : 1;
}

ChunkRange chunk_range(std::int64_t samples, std::int64_t chunks, std::int64_t index) {
  return {samples * index / chunks, samples * (index + 1) / chunks};
}

void run_chunks(std::int64_t chunks, const std::function<void(std::int64_t)>& compute) {
  if (chunks == 1) return compute(0);
  ChunkCall call(chunks, compute);
  ChunkThreads::instance().run(call);
  for (const std::exception_ptr& error : call.errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::int64_t current_chunk() {
  return chunk_of_thread == kNoChunk ? 0 : chunk_of_thread;
}

}  // namespace sdtune::model
