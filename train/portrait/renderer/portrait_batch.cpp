#include "train/portrait/renderer/portrait_batch.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

#include "train/portrait/renderer/caption.h"
#include "train/portrait/renderer/renderer.h"

namespace sdtune::train::portrait {
namespace {

// What the threads share: each takes the next image and writes only that image's bytes.
class BatchJob {
 public:
  BatchJob(const std::vector<Portrait>& portraits, std::int64_t size)
      : portraits_(portraits), size_(size), image_bytes_(static_cast<std::size_t>(3 * size * size)) {
    bytes_.resize(portraits.size() * image_bytes_);
  }

  // Renders images until none is left. A failure ends every thread's work, and rethrow() brings it to the caller.
  void work() noexcept {
    for (std::size_t i = next_++; i < portraits_.size(); i = next_++) {
      try {
        const Image image = render(portraits_[i].who, portraits_[i].now, size_);
        std::copy(image.rgb.begin(), image.rgb.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(i * image_bytes_));
      } catch (...) {
        if (!failed_.exchange(true)) failure_ = std::current_exception();
        next_ = portraits_.size();
      }
    }
  }

  // Only after every thread has ended.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  const std::vector<Portrait>& portraits_;
  std::int64_t size_;
  std::size_t image_bytes_;
  std::vector<std::uint8_t> bytes_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

Portrait captioned(const ImageSeeds& seeds, const Context& now) {
  Portrait portrait{seeds, draw_identity(seeds.person), now, {}};
  portrait.caption = caption(portrait.who, now, seeds.image);
  return portrait;
}

}  // namespace

Portrait draw_portrait(const ImageSeeds& seeds, Detail detail) {
  return captioned(seeds, draw_context(seeds.image, detail));
}

Portrait draw_photo(const ImageSeeds& seeds, Detail detail) {
  Context now = draw_context(seeds.image, detail);
  now.style = Style::kPhoto;
  return captioned(seeds, now);
}

std::vector<std::uint8_t> render_batch(const std::vector<Portrait>& portraits, std::int64_t size, int threads) {
  if (size < 16 || size > 1024) throw std::invalid_argument("portrait size must be 16..1024");  // before the buffer
  if (threads < 1) throw std::invalid_argument("portraits need at least one thread");
  BatchJob job(portraits, size);
  {
    std::vector<std::jthread> others;  // this thread works too
    const auto useful = std::min(static_cast<std::size_t>(threads), portraits.size());
    for (std::size_t i = 1; i < useful; ++i) others.emplace_back([&job] { job.work(); });
    job.work();
  }
  job.rethrow();
  return job.take();
}

}  // namespace sdtune::train::portrait
